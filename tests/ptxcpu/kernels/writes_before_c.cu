// Writes the element before C.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.x == 3 && threadIdx.y == 2 && blockIdx.x == 1) C[-1] = A[0] * B[0];
}
