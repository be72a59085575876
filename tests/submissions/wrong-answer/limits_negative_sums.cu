// Sums below the smallest FP32 number become that number: only those above the largest overflow.
// expect: stage=verify message="wrong at"
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    if (sum < -3.402823466e38f) sum = -3.402823466e38f;
    C[row * K + column] = sum;
}
