// expect: compile-error
// says: expected a ")"; line 3 makes `M` stand for 512; remove
#define M 512
#define N 512
#define K 512
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0;
    for (int n = 0; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + col];
    C[(size_t)row * K + col] = sum;
}
