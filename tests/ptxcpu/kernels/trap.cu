// Stops by a trap.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.x == 5 && blockIdx.y == 1) __trap();
    C[0] = A[0];
}
