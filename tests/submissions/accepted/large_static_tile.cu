// A static tile of 64 KiB. That is more than the default limit of 48 KiB, but CUDA 13 allows it.
// expect: message="" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][1024];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 1024) {
        for (int i = tx; i < 1024; i += 16)
            tile_a[ty][i] = row < M && n + i < N ? A[(size_t)row * N + n + i] : 0.0f;
        __syncthreads();
        if (column < K)
            for (int i = 0; i < 1024 && n + i < N; i++)
                sum += tile_a[ty][i] * B[(size_t)(n + i) * K + column];
        __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
