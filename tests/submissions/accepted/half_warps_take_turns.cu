// Groups of 16 lanes stage their rows of A in one buffer by turns. While one lane polls, the other lanes of its
// group wait at the barrier of the group, and those of the other half of the warp go on from there.
// expect: message="" quick=yes device=cpu

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ volatile int turn;
    __shared__ float staged[16];
    auto group = cg::tiled_partition<16>(cg::this_thread_block());
    int x = threadIdx.x, row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + x;
    if (x == 0 && threadIdx.y == 0) turn = 0;
    __syncthreads();
    float sum = 0.0f;
    for (int base = 0; base < N; base += 16) {
        if (x == 0) {
            while (turn != base + threadIdx.y) {}
            __threadfence_block();
        }
        group.sync();
        staged[x] = row < M && base + x < N ? A[(size_t)row * N + base + x] : 0.0f;
        group.sync();
        for (int n = 0; n < 16 && base + n < N; n++)
            if (column < K) sum += staged[n] * B[(size_t)(base + n) * K + column];
        group.sync();
        if (x == 0) {
            __threadfence_block();
            turn = base + threadIdx.y + 1;
        }
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
