extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int n = 0; n < N; n += 16) {
        a[y][x] = row < M && n + x < N ? A[row * N + n + x] : 0.0f;
        b[y][x] = n + y < N && col < K ? B[(n + y) * K + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            sum += a[y][k] * b[k][x];
            __threadfence_block();
        }
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
