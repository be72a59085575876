// Prints without end.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    for (int i = 0; i < 100; ++i) printf("flood %d\n", i);
    C[0] = A[0];
}
