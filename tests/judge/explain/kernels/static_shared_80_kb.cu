extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float scratch[20000];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    int thread = threadIdx.y * 16 + threadIdx.x;
    scratch[thread] = 0.0f;
    if (row >= M || col >= K) return;
    float sum = scratch[thread];
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
