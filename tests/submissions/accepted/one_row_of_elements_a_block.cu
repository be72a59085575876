// Honest: a block computes 256 elements that follow one another in C, and so parts of 16 tiles.
// expect: message="" quick=few slow=yes

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int blocks = gridDim.x * gridDim.y;
    for (int i = block * 256 + threadIdx.y * 16 + threadIdx.x; i < M * K; i += blocks * 256) {
        int row = i / K, column = i % K;
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
        C[i] = sum;
    }
}
