// Dynamic parallelism: another grid does the work, without limits, guards and clocks of the judge.
// expect: message="device-side kernel launch" stage=compile

__global__ void element(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0)
        element<<<gridDim, blockDim>>>(A, B, C, M, N, K);
}
