// Whole warps return before the barriers. Each warp computes two rows of a tile of 16x16.
// expect: message="" quick=yes
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float tile[32][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    int first = (threadIdx.y & ~1) + blockIdx.y * 16;
    if (first >= M) return;
    int left = min(16, (M - (int)blockIdx.y * 16 + 1) & ~1);
    float sum = 0.0f;
    for (int n = 0; n < N; n += 32) {
        for (int i = threadIdx.y; i < 32; i += left)
            tile[i][threadIdx.x] = n + i < N && col < K ? B[(n + i) * K + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32 && n + i < N; i++)
            if (row < M) sum += A[row * N + n + i] * tile[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
