// expect: race
// says: only a barrier of the cluster
// says: An arrival or a wait that is relaxed orders no accesses. Use the default
// solve: tile=16x16
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// The blocks of a cluster compute neighbouring tiles. Each loads half of the tile of A for both.
__global__ void __cluster_dims__(2, 1) matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][8];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int t = 0; t < N; t += 16) {
        int n = t + rank * 8 + x;
        if (x < 8) a[y][x] = row < M && n < N ? A[row * N + n] : 0.0f;
        __syncthreads();
        asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
        for (int i = 0; i < 16 && t + i < N; i++) {
            float element = *cluster.map_shared_rank(&a[y][i % 8], i / 8);
            if (col < K) sum += element * B[(t + i) * K + col];
        }
        cluster.sync();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
