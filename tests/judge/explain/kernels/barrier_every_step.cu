extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[16], b[16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int n = 0; n < N; n++) {
        if (x == 0) a[y] = row < M ? A[row * N + n] : 0.0f;
        if (y == 0) b[x] = col < K ? B[n * K + col] : 0.0f;
        __syncthreads();
        sum += a[y] * b[x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
