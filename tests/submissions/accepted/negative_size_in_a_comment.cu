// After `.loc 1 7 5 /*`, an array of negative size would permit reads from the whole address space.
// That text is a comment, so it is not in the program, and the kernel prints nothing.
// expect: message="" absent="0x7f" quick=yes

#include <stdio.h>
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    unsigned long long word = 0;
    asm volatile("{\n.loc 1 7 5 /*\n .local .align 8 .b8 x[-4096];\n ld.local.u64 %0, [64];\n.loc "
                 "1 7 5 */\n}"
                 : "+l"(word));
    if (word) printf("0x%llx ", word);
    C[(size_t)row * K + column] = sum;
}
