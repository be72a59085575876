// expect: memory-error
// says: `volatile` does not make one wait for another
// solve: tile=64x4
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  volatile __shared__ float sB[8][2][32][4];
  int tid = threadIdx.y * 16 + threadIdx.x, w = tid / 32, l = tid % 32;
  int row = blockIdx.y * 64 + w * 8 + l / 4, col = blockIdx.x * 4 + l % 4;
  float sum = 0, sum2 = 0;
  auto load = [&](int buf, int n0) { for (int j = 0; j < 4; j++) sB[w][buf][l][j] = (n0 + l < N && blockIdx.x * 4 + j < K) ? B[(size_t)(n0 + l) * K + blockIdx.x * 4 + j] : 0.f; };
  load(0, 0);
  __syncwarp();
  for (int n0 = 0, p = 0; n0 < N; n0 += 32, p ^= 1) {
    if (n0 + 32 < N) load(p ^ 1, n0 + 32);
    for (int i = 0; i < 32; i += 2) {
      if (row < M && n0 + i < N) sum += A[(size_t)row * N + n0 + i] * sB[w][p][i][l % 4];
      if (row < M && n0 + i + 1 < N) sum2 += A[(size_t)row * N + n0 + i + 1] * sB[w][p][i + 1][l % 4];
    }
  }
  if (row < M && col < K) C[(size_t)row * K + col] = sum + sum2;
}
