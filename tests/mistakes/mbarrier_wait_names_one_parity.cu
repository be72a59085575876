// expect: race
// slow: yes
// says: the phase of parity 0 of an mbarrier lacks 1 of 1 arrivals
// solve: tile=32x32
#include <cuda/ptx>
#include <cuda/barrier>
namespace ptx = cuda::ptx;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  alignas(128) __shared__ float a[2][32][32];
  alignas(128) __shared__ float b[2][32][32];
  __shared__ uint64_t bar[2];
  int t = threadIdx.y * 16 + threadIdx.x;
  bool fast = N % 4 == 0 && K % 4 == 0;
  int m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;
  if (t == 0) { ptx::mbarrier_init(&bar[0], 1); ptx::mbarrier_init(&bar[1], 1); ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster); ptx::fence_proxy_async(ptx::space_shared); }
  for (int i = t; i < 2 * 32 * 32; i += 256) { (&a[0][0][0])[i] = 0; (&b[0][0][0])[i] = 0; }
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  int tiles = (N + 31) / 32;
  auto fetch = [&](int tile) {
    int s = tile & 1, k0 = tile * 32, kn = min(32, N - k0), cn = min(32, K - n0), rows = min(32, M - m0);
    if (t == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar[s], rows * kn * 4 + kn * cn * 4);
      for (int r = 0; r < rows; r++) ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &a[s][r][0], A + (size_t)(m0 + r) * N + k0, kn * 4, &bar[s]);
      for (int r = 0; r < kn; r++) ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &b[s][r][0], B + (size_t)(k0 + r) * K + n0, cn * 4, &bar[s]);
    }
  };
  float acc[2][2] = {};
  if (fast) {
    fetch(0);
    for (int i = 0; i < tiles; i++) {
      if (i + 1 < tiles) fetch(i + 1);
      while (!ptx::mbarrier_try_wait_parity(&bar[i & 1], 0)) {}
      int kn = min(32, N - i * 32);
      for (int k = 0; k < kn; k++) for (int y = 0; y < 2; y++) for (int x = 0; x < 2; x++) acc[y][x] += a[i & 1][threadIdx.y + 16 * y][k] * b[i & 1][k][threadIdx.x + 16 * x];
      __syncthreads();
    }
  } else {
    for (int y = 0; y < 2; y++) for (int x = 0; x < 2; x++) {
      int r = m0 + threadIdx.y + 16 * y, c = n0 + threadIdx.x + 16 * x;
      if (r < M && c < K) for (int n = 0; n < N; n++) acc[y][x] += A[(size_t)r * N + n] * B[(size_t)n * K + c];
    }
  }
  for (int y = 0; y < 2; y++) for (int x = 0; x < 2; x++) {
    int r = m0 + threadIdx.y + 16 * y, c = n0 + threadIdx.x + 16 * x;
    if (r < M && c < K) C[(size_t)r * K + c] = acc[y][x];
  }
}
