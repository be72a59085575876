// expect: memory-error
// says: and column 0 of this thread are inside C. So an index is wrong, or a block computes more than 16×16 elements
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    int padded = (K + 15) / 16 * 16;
    C[row * padded + column] = sum;
}
