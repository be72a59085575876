// Includes itself, by its name in the compiler, until memory is exhausted.
// expect: stage=read message="must name its header literally"

#include __FILE__

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
