// expect: race
// says: only a barrier of the cluster
// solve: tile=8x32
#include <cooperative_groups.h>
// Split-K in a cluster of four blocks along y: each computes a quarter of the sum of a 32x32 tile, then adds a quarter of the rows.
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(1, 4) matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[32][33], b[32][32], part[32][32];
  auto cl = cg::this_cluster();
  int rank = cl.block_rank(), t = threadIdx.y * 16 + threadIdx.x, w = t / 32, l = t % 32;
  int r0 = blockIdx.y / 4 * 32, c0 = blockIdx.x * 32;
  float acc[4] = {};
  for (int k0 = rank * 32; k0 < N; k0 += 128) {
    for (int i = w; i < 32; i += 8) {
      a[i][l] = r0 + i < M && k0 + l < N ? A[(size_t)(r0 + i) * N + k0 + l] : 0.f;
      b[i][l] = k0 + i < N && c0 + l < K ? B[(size_t)(k0 + i) * K + c0 + l] : 0.f;
    }
    __syncthreads();
    for (int k = 0; k < 32; k++) for (int i = 0; i < 4; i++) acc[i] += a[w + 8 * i][k] * b[k][l];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) part[w + 8 * i][l] = acc[i];
  __syncthreads();
  float s = 0;
  for (int p = 0; p < 4; p++) s += cl.map_shared_rank(&part[0][0], p)[(rank * 8 + w) * 32 + l];
  int r = r0 + rank * 8 + w, c = c0 + l;
  if (r < M && c < K) C[(size_t)r * K + c] = s;
  cl.sync();
}
