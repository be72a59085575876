// Honest: two blocks along z each compute half the sum. The grid has two blocks along z because it
// consists of whole clusters.
// expect: message="" quick=yes

#include <cooperative_groups.h>

extern "C" __global__ void __cluster_dims__(1, 1, 2)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float halves[16][16];
    auto cluster = cooperative_groups::this_cluster();
    int rank = blockIdx.z, x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    int half = (N + 1) / 2, end = rank ? N : half;
    float sum = 0.0f;
    for (int n = rank * half; n < end && row < M && column < K; n++)
        sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    halves[y][x] = sum;
    cluster.sync();
    if (rank == 0) sum += cluster.map_shared_rank(&halves[y][x], 1)[0];
    cluster.sync();
    if (rank == 0 && row < M && column < K) C[(size_t)row * K + column] = sum;
}
