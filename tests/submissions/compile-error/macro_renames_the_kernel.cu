// A macro replaces the kernel's name, so the compiled kernel has another name than the launched one.
// expect: stage=compile message="no kernel named matrix_multiplication_kernel"

#define matrix_multiplication_kernel something_else

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0] * M * N * K;
}
