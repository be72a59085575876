// Treats numbers below 2^-100 as zero, as splits into narrow types without scaling do.
// expect: stage=verify message="wrong at" slow=yes
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float a = A[row * N + n];
        sum += (fabsf(a) < 0x1p-100f ? 0.0f : a) * B[n * K + column];
    }
    C[row * K + column] = sum;
}
