// expect: memory-error
// says: Not every size is a multiple of the tile's. A thread
// solve: tile=64x64
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 64 + threadIdx.y * 4, col = blockIdx.x * 64 + threadIdx.x * 4;
    float sum[4][4] = {};
    for (int n = 0; n < N; n++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) sum[i][j] += A[(row + i) * N + n] * B[n * K + col + j];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) C[(row + i) * K + col + j] = sum[i][j];
}
