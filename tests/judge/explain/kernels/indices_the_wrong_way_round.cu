extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        a[y][x] = row < M && n + x < N ? A[row * N + n + x] : 0.0f;
        b[x][y] = n + x < N && col + y < K ? B[(n + x) * K + col + y] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < M && col + x < K) C[row * K + col + x] = sum;
}
