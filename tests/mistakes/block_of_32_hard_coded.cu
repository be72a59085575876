// expect: wrong-answer
// says: of each 32×32 elements of C only the first 16×16 are written
// says: a block has 16×16 threads
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 32 + threadIdx.y;
    int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
