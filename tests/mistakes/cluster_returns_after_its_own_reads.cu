// expect: memory-error
// says: all threads of which had returned
// says: write `cluster.sync();` after the last read
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// solve: tile=32x32
// Two blocks of a cluster side by side share the tile of A: each loads half of it and reads the other half remotely.
__global__ void __cluster_dims__(2, 1, 1) matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float half[16][33];
  __shared__ float b[32][33];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned me = cluster.block_rank();
  const float(*h0)[33] = reinterpret_cast<const float(*)[33]>(cluster.map_shared_rank(&half[0][0], 0));
  const float(*h1)[33] = reinterpret_cast<const float(*)[33]>(cluster.map_shared_rank(&half[0][0], 1));
  int t = threadIdx.y * 16 + threadIdx.x, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
  float acc[4] = {};
  for (int k0 = 0; k0 < N; k0 += 32) {
    for (int e = t; e < 512; e += 256) {
      int r = r0 + me * 16 + e / 32, k = k0 + e % 32;
      half[e / 32][e % 32] = r < M && k < N ? A[(size_t)r * N + k] : 0.f;
    }
    for (int e = t; e < 1024; e += 256) {
      int k = k0 + e / 32, c = c0 + e % 32;
      b[e / 32][e % 32] = k < N && c < K ? B[(size_t)k * K + c] : 0.f;
    }
    cluster.sync();
    for (int k = 0; k < 32; k++) {
      float v = b[k][t % 32];
      acc[0] += h0[t / 32][k] * v;
      acc[1] += h0[t / 32 + 8][k] * v;
      acc[2] += h1[t / 32][k] * v;
      acc[3] += h1[t / 32 + 8][k] * v;
    }
    if (k0 + 32 < N) cluster.sync();
  }
  for (int i = 0; i < 4; i++) {
    int r = r0 + t / 32 + 8 * i, c = c0 + t % 32;
    if (r < M && c < K) C[(size_t)r * K + c] = acc[i];
  }
}
