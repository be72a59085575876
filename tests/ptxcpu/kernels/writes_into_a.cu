// Changes an element of A.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.x == 0 && threadIdx.y == 0) ((float*)A)[5] = 3.0f;
    C[0] = B[0];
}
