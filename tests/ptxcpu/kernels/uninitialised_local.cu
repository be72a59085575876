// Sums a local array of which only the first M elements are written.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    float x[8];
    for (int i = 0; i < M && i < 8; ++i) x[i] = A[i];
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum += x[(i * K) & 7];
    C[0] = sum;
}
