// expect: race
// says: A block may store only the elements of its own tile
// solve: tile=32x32
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  int r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
  if (r0 + 32 > M && r0 > 0) r0 = M - 32 + (M % 2);
  for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) {
    int r = r0 + threadIdx.y + 16 * i, c = c0 + threadIdx.x + 16 * j;
    if (r >= M || c >= K) continue;
    float s = 0; for (int n = 0; n < N; n++) s += A[(size_t)r * N + n] * B[(size_t)n * K + c];
    C[(size_t)r * K + c] = s;
  }
}
