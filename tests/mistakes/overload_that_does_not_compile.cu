// expect: compile-error
// says: identifier "factor" is undefined
__device__ float scaled(float x) { return x * factor; }
__device__ float scaled(double x) { return x; }
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0;
    for (int n = 0; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + col];
    C[(size_t)row * K + col] = scaled(sum);
}
