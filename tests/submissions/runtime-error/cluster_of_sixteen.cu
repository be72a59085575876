// Requests clusters of sixteen blocks, which not every GPU can run together.
// expect: message="the kernel's clusters have 16 blocks" stage=compile quick=yes

extern "C" __global__ void __cluster_dims__(16, 1, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
