extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int n = 0; n < N; n += 16) {
        float mine = row < M && n + x < N ? A[row * N + n + x] : 0.0f;
        float theirs = n + y < N && col < K ? B[(n + y) * K + col] : 0.0f;
        __shared__ float b[16][16];
        b[y][x] = theirs;
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += __shfl_sync(~0u, mine, k, 16) * b[k][x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
