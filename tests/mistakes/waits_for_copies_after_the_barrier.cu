// expect: race
// slow: yes
// says: Wait first, then write `__syncthreads();`, then read
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
// solve: tile=16x32
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[2][16][32];
  __shared__ float b[2][32][32];
  auto g = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(g);
  int r0 = blockIdx.y * 16, c0 = blockIdx.x * 32, w = warp.meta_group_rank(), l = warp.thread_rank();
  auto load = [&](int s, int k0) {
    int len = min(32, N - k0), wide = min(32, K - c0);
    for (int r = w; r < 16; r += 8) {
      if (r0 + r < M) cg::memcpy_async(warp, a[s][r], A + (size_t)(r0 + r) * N + k0, sizeof(float) * len);
      if (l >= len || r0 + r >= M) a[s][r][l] = 0.f;
    }
    for (int k = w; k < 32; k += 8) {
      if (k < len) cg::memcpy_async(warp, b[s][k], B + (size_t)(k0 + k) * K + c0, sizeof(float) * wide);
      if (l >= wide || k >= len) b[s][k][l] = 0.f;
    }
  };
  float x = 0, y = 0;
  load(0, 0);
  for (int k0 = 0, s = 0; k0 < N; k0 += 32, s ^= 1) {
    g.sync();
    cg::wait(warp);
    if (k0 + 32 < N) load(s ^ 1, k0 + 32);
    for (int k = 0; k < 32; k++) { x += a[s][w][k] * b[s][k][l]; y += a[s][w + 8][k] * b[s][k][l]; }
  }
  if (c0 + l < K) {
    if (r0 + w < M) C[(size_t)(r0 + w) * K + c0 + l] = x;
    if (r0 + w + 8 < M) C[(size_t)(r0 + w + 8) * K + c0 + l] = y;
  }
}
