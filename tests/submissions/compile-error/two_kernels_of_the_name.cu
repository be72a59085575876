// Two overloads of the kernel, which make the launch ambiguous.
// expect: stage=compile message="kernels are named matrix_multiplication_kernel"

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    C[0] = A[0] * B[0];
}

typedef unsigned Size;

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, Size M,
                                             Size N, Size K) {
    C[0] = A[0] * B[0];
}
