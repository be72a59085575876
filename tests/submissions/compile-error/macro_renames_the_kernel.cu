// A macro makes another name of the kernel's: what was compiled has not the name that is launched.
// expect: stage=compile message="no kernel named matrix_multiplication_kernel"

#define matrix_multiplication_kernel something_else

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0] * M * N * K;
}
