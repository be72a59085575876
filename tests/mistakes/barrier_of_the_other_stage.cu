// expect: race
// says: barrier 4 has 128 of 256 threads
// says: with the same number and in the same order
// solve: tile=32x32
constexpr int BK = 16;
#define BAR_SYNC(id, n) asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(n) : "memory")
#define BAR_ARRIVE(id, n) asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(n) : "memory")
enum Named { FULL = 1, EMPTY = 3 };
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[2][32][BK + 1], b[2][BK][32];
  int t = threadIdx.y * 16 + threadIdx.x;
  int m0 = blockIdx.y * 32, n0 = blockIdx.x * 32, tiles = (N + BK - 1) / BK;
  if (t < 128) {
    for (int i = 0; i < tiles; i++) {
      int s = i & 1;
      if (i >= 2) BAR_SYNC(EMPTY + (s ^ 1), 256);
      for (int e = t; e < 32 * BK; e += 128) {
        int r = e / BK, k = e % BK;
        a[s][r][k] = m0 + r < M && i * BK + k < N ? A[(size_t)(m0 + r) * N + i * BK + k] : 0;
        int kb = e / 32, c = e % 32;
        b[s][kb][c] = i * BK + kb < N && n0 + c < K ? B[(size_t)(i * BK + kb) * K + n0 + c] : 0;
      }
      __threadfence_block();
      BAR_ARRIVE(FULL + s, 256);
    }
  } else {
    t -= 128;
    float acc[8] = {};
    int r = t / 4, c = t % 4 * 8;
    for (int i = 0; i < tiles; i++) {
      int s = i & 1;
      BAR_SYNC(FULL + s, 256);
      for (int k = 0; k < BK; k++) for (int j = 0; j < 8; j++) acc[j] += a[s][r][k] * b[s][k][c + j];
      if (i + 2 < tiles) BAR_ARRIVE(EMPTY + s, 256);
    }
    for (int j = 0; j < 8; j++) if (m0 + r < M && n0 + c + j < K) C[(size_t)(m0 + r) * K + n0 + c + j] = acc[j];
  }
}
