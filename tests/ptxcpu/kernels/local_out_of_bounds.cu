// Runs over the end of a local array.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    float x[8];
    for (int i = 0; i < 8; ++i) x[i] = A[i];
    x[M] = B[0];
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum += x[(i * K) % 8];
    C[0] = sum;
}
