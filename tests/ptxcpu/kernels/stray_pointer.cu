// Uses an integer as a pointer.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.x == 1 && threadIdx.y == 1) *(float*)(size_t)(0x1234560 + 64 * M) = A[0];
}
