// expect: race
// slow: yes
// says: write `__syncthreads();` after the read
#include <cuda/barrier>
#include <cuda/std/utility>
using barrier = cuda::barrier<cuda::thread_scope_block>;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ alignas(16) float a[2][16][16];
  __shared__ alignas(16) float b[2][16][16];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier ready[2];
  unsigned x = threadIdx.x, y = threadIdx.y;
  if (x == 0 && y == 0) { init(&ready[0], 256); init(&ready[1], 256); }
  __syncthreads();
  size_t row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  auto start = [&](int s, int k) {
    if (row < M && k + x < N) cuda::memcpy_async(&a[s][y][x], &A[row * N + k + x], cuda::aligned_size_t<4>(4), ready[s]);
    else a[s][y][x] = 0;
    if (k + y < N && col < K) cuda::memcpy_async(&b[s][y][x], &B[(size_t)(k + y) * K + col], cuda::aligned_size_t<4>(4), ready[s]);
    else b[s][y][x] = 0;
  };
  float sum = 0;
  start(0, 0);
  int s = 0;
  for (int k = 0; k < N; k += 16, s ^= 1) {
    if (k + 16 < N) start(s ^ 1, k + 16);
    ready[s].arrive_and_wait();
    for (int i = 0; i < 16; i++) sum += a[s][y][i] * b[s][i][x];
  }
  if (row < M && col < K) C[row * K + col] = sum;
}
