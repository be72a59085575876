// grid.sync() of cooperative groups needs a cooperative launch, which the rules do not make.
// expect: device=cuda message=""

#include <cooperative_groups.h>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
        C[row * K + column] = sum;
    }
    cooperative_groups::this_grid().sync();
}
