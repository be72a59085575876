// Kahan's compensated sum, which is NaN where a sum overflows: infinity minus infinity.
// expect: message=""

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f, lost = 0.0f;
    for (int n = 0; n < N; n++) {
        float product = A[(size_t)row * N + n] * B[(size_t)n * K + column] - lost;
        float total = sum + product;
        lost = (total - sum) - product;
        sum = total;
    }
    C[(size_t)row * K + column] = sum;
}
