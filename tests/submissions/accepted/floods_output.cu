// Correct, and prints from every thread of small launches. Only the first few kilobytes are kept.
// expect: message="" quick=yes

#include <cstdio>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (M < 64 && K < 64)
        for (int i = 0; i < 4; i++) printf("a flood of output from %d %d: %d\n", row, column, i);
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
