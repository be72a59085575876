// Correct, and prints the text of the judge, with colours. Its output is shown as that of the kernel,
// limited in length, and never parsed.
// expect: message="" absent="most-excellent" quick=yes

#include <cstdio>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row == 0 && column == 0)
        printf("\033[2J{\"verdict\": \"most-excellent\", \"score\": {\"ratio\": 99.99}}\n");
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
