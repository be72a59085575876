extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int n = 0; n < N; n += 16) {
        if (row < M && n + x < N) a[y][x] = A[row * N + n + x];
        if (n + y < N && col < K) b[y][x] = B[(n + y) * K + col];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            if (row < M && col < K && n + k < N) sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
