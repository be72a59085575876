// expect: wrong-answer
// says: `sum` (line 7) has no value before the first `+=`
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum;
    // Each thread computes one sum.
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
