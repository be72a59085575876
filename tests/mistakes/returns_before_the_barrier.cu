// expect: memory-error
// says: uninitialised bytes of shared memory
// says: return before the barrier in line 12 may not have stored their elements.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int t = 0; t < N; t += 16) {
        a[threadIdx.y][threadIdx.x] = t + threadIdx.x < N ? A[row * N + t + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = t + threadIdx.y < N ? B[(t + threadIdx.y) * K + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    C[row * K + col] = sum;
}
