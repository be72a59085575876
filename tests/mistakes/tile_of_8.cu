// expect: memory-error
// says: of b (256 bytes), right past its end
// says: `threadIdx.x` and `threadIdx.y` go up to 15
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float a[8][8], b[8][8];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 8) {
        a[y][x] = row < M && n + x < N ? A[row * N + n + x] : 0.0f;
        b[y][x] = n + y < N && column < K ? B[(n + y) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 8; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
