// Dynamic parallelism: a kernel that launches kernels would do its work in blocks of its own
// choice.
// expect: stage=compile message=""

__global__ void child(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0)
        child<<<dim3((K + 31) / 32, (M + 31) / 32), dim3(32, 32)>>>(A, B, C, M, N, K);
}
