// The kernel has another name.
// expect: stage=compile message="no kernel named matrix_multiplication_kernel"

extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = A[0] * B[0];
}
