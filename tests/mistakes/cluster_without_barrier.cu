// expect: race
// says: only a barrier of the cluster
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][8], b[16][16];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    float* left = cluster.map_shared_rank(&a[0][0], 0);
    float* right = cluster.map_shared_rank(&a[0][0], 1);
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < N; k += 16) {
        int n = k + rank * 8 + x;
        if (x < 8) a[y][x] = row < M && n < N ? A[(size_t)row * N + n] : 0;
        b[y][x] = col < K && k + y < N ? B[(size_t)(k + y) * K + col] : 0;
        cluster.sync();
        for (int i = 0; i < 8; i++) sum += left[y * 8 + i] * b[i][x];
        for (int i = 0; i < 8; i++) sum += right[y * 8 + i] * b[8 + i][x];
        __syncthreads();
    }
    cluster.sync();
    if (row < M && col < K) C[(size_t)row * K + col] = sum;
}
