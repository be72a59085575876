// expect: race
// slow: yes
// says: read it only between the two
// solve: tile=32x32
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
constexpr int STAGES = 3, T = 32;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[STAGES][T][T], b[STAGES][T][T];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const int t = block.thread_rank(), r0 = blockIdx.y * T, c0 = blockIdx.x * T;
  const int tiles = (N + T - 1) / T;
  float acc[4] = {};
  auto fetch = [&](int i) {
    int s = i % STAGES;
    pipe.producer_acquire();
    for (int e = t; e < T * T; e += 256) {
      int r = e / T, c = e % T, k = i * T;
      if (r0 + r < M && k + c < N) cuda::memcpy_async(&a[s][r][c], A + (size_t)(r0 + r) * N + k + c, sizeof(float), pipe);
      else a[s][r][c] = 0;
      if (k + r < N && c0 + c < K) cuda::memcpy_async(&b[s][r][c], B + (size_t)(k + r) * K + c0 + c, sizeof(float), pipe);
      else b[s][r][c] = 0;
    }
    pipe.producer_commit();
  };
  int fetched = 0;
  for (int i = 0; i < tiles; i++) {
    for (; fetched < tiles && fetched < i + STAGES; fetched++) fetch(fetched);
    pipe.consumer_wait();
    int s = i % STAGES;
    pipe.consumer_release();
    for (int k = 0; k < T; k++)
      for (int j = 0; j < 4; j++) acc[j] += a[s][t / 32 + 8 * j][k] * b[s][k][t % 32];
  }
  for (int j = 0; j < 4; j++) {
    int r = r0 + t / 32 + 8 * j, c = c0 + t % 32;
    if (r < M && c < K) C[(size_t)r * K + c] = acc[j];
  }
}
