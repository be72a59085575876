// expect: race
// says: A block has 16×16 threads: number the threads of a block by
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.x / 16;
    int col = blockIdx.x * 16 + threadIdx.x % 16;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
