// expect: race
// says: Give each block a part of its own
// solve: tile=64x64
__device__ float pack[512][64 * 64];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  int t = threadIdx.y * 16 + threadIdx.x, X = (K + 63) / 64, tiles = X * ((M + 63) / 64);
  if (blockIdx.x >= 512) return;
  float* mine = pack[blockIdx.x];
  for (int tile = blockIdx.y * gridDim.x + blockIdx.x; tile < tiles; tile += tiles) {
    int r0 = tile / X * 64, c0 = tile % X * 64;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < N; k0 += 64) {
      __syncthreads();
      for (int e = t; e < 4096; e += 256) mine[e] = k0 + e / 64 < N && c0 + e % 64 < K ? B[(size_t)(k0 + e / 64) * K + c0 + e % 64] : 0.f;
      __syncthreads();
      for (int k = 0; k < min(64, N - k0); k++) {
        float4 v = *reinterpret_cast<const float4*>(mine + k * 64 + threadIdx.x * 4);
        for (int i = 0; i < 4; i++) {
          int r = r0 + threadIdx.y * 4 + i;
          float u = r < M ? __ldg(&A[(size_t)r * N + k0 + k]) : 0.f;
          acc[i][0] += u * v.x; acc[i][1] += u * v.y; acc[i][2] += u * v.z; acc[i][3] += u * v.w;
        }
      }
    }
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) {
      int r = r0 + threadIdx.y * 4 + i, c = c0 + threadIdx.x * 4 + j;
      if (r < M && c < K) C[(size_t)r * K + c] = acc[i][j];
    }
  }
}
