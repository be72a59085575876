// Waits for its own threads only before it refills what the other block of its cluster reads.
// expect: message="with no barrier between them" finding=race quick=yes device=cpu

#include <cooperative_groups.h>

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float half_of_A[16][8];
    __shared__ float Bs[16][16];
    auto cluster = cooperative_groups::this_cluster();
    int rank = cluster.block_rank(), x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int first = 0; first < N; first += 16) {
        int n = first + 8 * rank + x;
        if (x < 8) half_of_A[y][x] = row < M && n < N ? A[(size_t)row * N + n] : 0.0f;
        Bs[y][x] = first + y < N && column < K ? B[(size_t)(first + y) * K + column] : 0.0f;
        cluster.sync();
        for (int part = 0; part < 2; ++part) {
            const float* a = cluster.map_shared_rank(half_of_A[y], part);
            for (int i = 0; i < 8; ++i) sum += a[i] * Bs[8 * part + i][x];
        }
        __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
