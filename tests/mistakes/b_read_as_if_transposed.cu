// expect: wrong-answer
// says: B: addressed column by column
// says: matrices lie in memory row by row: B[n * K + column]
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[col * N + n];
    C[row * K + col] = sum;
}
