// The tile of a block is a ticket that one thread of its group draws and shuffles to the others.
// expect: message="" quick=yes

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned tickets, finished;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ unsigned drawn;
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) drawn = atomicAdd(&tickets, 1u);
    block.sync();
    int row = drawn / gridDim.x * 16 + threadIdx.y, column = drawn % gridDim.x * 16 + threadIdx.x;
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    if (block.thread_rank() == 0 && atomicAdd(&finished, 1u) == grid.num_blocks() - 1)
        tickets = finished = 0;
}
