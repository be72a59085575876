extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    long long row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0;
    for (long long n = 0; n < N; n++) sum += A[row * N + n % N] * B[n * K + col];
    C[row * K + col] = sum;
}
