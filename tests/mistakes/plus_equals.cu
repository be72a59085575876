// expect: memory-error
// says: C[row * K + col] += A[row * N + n]
// says: write `C[…] = sum`, without `+=` and without
// says: in line 10
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    for (int n = 0; n < N; n++) C[row * K + col] += A[row * N + n] * B[n * K + col];
}
