extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float tile_b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int n = 0; n < N; n += 16) {
        tile_b[y][x] = n + y < N && col < K ? B[(n + y) * K + col] : 0.0f;
        __syncthreads();
        for (int i = 0; row < M && i < 16 && n + i < N; i++)
            sum += A[row * N + n + i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
