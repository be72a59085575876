// Threads outside C return at once. A barrier waits only for threads that have not returned.
// expect: message="" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        for (int i = ty; i < 16; i += min(16, M - (int)blockIdx.y * 16))
            tile_b[i][tx] = n + i < N ? B[(n + i) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16 && n + i < N; i++) sum += A[row * N + n + i] * tile_b[i][tx];
        __syncthreads();
    }
    C[row * K + column] = sum;
}
