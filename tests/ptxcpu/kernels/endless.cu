// A loop that the compiler cannot prove away.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    float sum = 0.0f;
    volatile float* c = C;
    for (int i = 0; i < N;) {
        sum += A[0];
        c[0] = sum;
        if (sum > 1e30f) ++i;
    }
}
