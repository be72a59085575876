// expect: race
// slow: yes
// says: uses what
// says: execute `__syncthreads();` before another one uses them
// solve: tile=64x64
#include <cuda/ptx>
#include <cuda/barrier>
namespace ptx = cuda::ptx;
constexpr int S = 4, BK = 8;
__global__ void __launch_bounds__(256) matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[S][64][BK + 1], b[S][BK][64];
  __shared__ uint64_t full[S], empty[S];
  int t = threadIdx.y * 16 + threadIdx.x, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64, steps = (N + BK - 1) / BK;
  if (t < S) { ptx::mbarrier_init(&full[t], 64); ptx::mbarrier_init(&empty[t], 192); }
  if (t < 64) {
    for (int i = 0; i < steps; i++) {
      int s = i % S, k0 = i * BK;
      if (i >= S) while (!ptx::mbarrier_try_wait_parity(&empty[s], (i / S - 1) & 1)) {}
      for (int e = t; e < 64 * BK; e += 64) {
        int r = e / BK, k = e % BK; a[s][r][k] = r0 + r < M && k0 + k < N ? A[(size_t)(r0 + r) * N + k0 + k] : 0;
        k = e / 64; int c = e % 64; b[s][k][c] = c0 + c < K && k0 + k < N ? B[(size_t)(k0 + k) * K + c0 + c] : 0;
      }
      ptx::mbarrier_arrive(&full[s]);
    }
  } else {
    int u = t - 64;
    float acc[22] = {};
    for (int i = 0; i < steps; i++) {
      int s = i % S;
      while (!ptx::mbarrier_try_wait_parity(&full[s], (i / S) & 1)) {}
      for (int k = 0; k < BK; k++)
#pragma unroll
        for (int j = 0; j < 22; j++) { int e = u + 192 * j; if (e < 4096) acc[j] += a[s][e / 64][k] * b[s][k][e % 64]; }
      ptx::mbarrier_arrive(&empty[s]);
    }
    for (int j = 0; j < 22; j++) { int e = u + 192 * j, r = r0 + e / 64, c = c0 + e % 64; if (e < 4096 && r < M && c < K) C[(size_t)r * K + c] = acc[j]; }
  }
}
