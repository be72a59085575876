// expect: memory-error
// says: must store zeros there
// solve: tile=16x16
__device__ unsigned ticket[1 << 18];
__device__ volatile unsigned zeroed[1 << 18];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ unsigned mine;
  __shared__ float a[32][17], b[16][33];
  int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
  int X = (K + 31) / 32, bx = blockIdx.x / 2, by = blockIdx.y / 2;
  int id = by * X + bx;
  int peers = (min(2, (int)gridDim.x - 2 * bx)) * (min(2, (int)gridDim.y - 2 * by));
  if (t == 0) mine = atomicAdd(&ticket[id], 1);
  __syncthreads();
  int part = mine, r0 = by * 32, c0 = bx * 32;
  if (part == 0) {
    for (int e = t; e < 1024; e += 256) if (r0 + e / 32 < M && c0 + e % 32 < K) (void)0;
    __threadfence();
    __syncthreads();
    if (t == 0) zeroed[id] = 1;
  }
  float acc[2][2] = {};
  int tiles = (N + 15) / 16;
  for (int i = part; i < tiles; i += peers) {
    int k0 = i * 16;
    for (int e = t; e < 512; e += 256) {
      int r = e / 16, k = e % 16; a[r][k] = r0 + r < M && k0 + k < N ? A[(size_t)(r0 + r) * N + k0 + k] : 0.f;
      int kb = e / 32, c = e % 32; b[kb][c] = c0 + c < K && k0 + kb < N ? B[(size_t)(k0 + kb) * K + c0 + c] : 0.f;
    }
    __syncthreads();
    for (int k = 0; k < 16; k++) for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) acc[i][j] += a[ty + 16 * i][k] * b[k][tx + 16 * j];
    __syncthreads();
  }
  if (t == 0) { while (zeroed[id] == 0) ; __threadfence(); }
  __syncthreads();
  for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) {
    int r = r0 + ty + 16 * i, c = c0 + tx + 16 * j;
    if (r < M && c < K) atomicAdd(&C[(size_t)r * K + c], acc[i][j]);
  }
}
