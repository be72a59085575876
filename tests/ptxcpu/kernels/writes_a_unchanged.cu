// Writes to A the values that are there already.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.x == 0 && threadIdx.y == 0) ((volatile float*)A)[5] = A[5];
    C[0] = B[0];
}
