// expect: race
// says: Is it computed from `threadIdx.y * 16 + threadIdx.x`?
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[16][16], b[16][16];
  int t = threadIdx.y * 32 + threadIdx.x, tx = t % 16, ty = t / 16 % 16, r = blockIdx.y * 16 + ty, c = blockIdx.x * 16 + tx;
  float s = 0;
  for (int k = 0; k < N; k += 16) {
    a[ty][tx] = r < M && k + tx < N ? A[(size_t)r * N + k + tx] : 0;
    b[ty][tx] = k + ty < N && c < K ? B[(size_t)(k + ty) * K + c] : 0;
    __syncthreads();
    for (int i = 0; i < 16; i++) s += a[ty][i] * b[i][tx];
    __syncthreads();
  }
  if (r < M && c < K) C[(size_t)r * K + c] = s;
}
