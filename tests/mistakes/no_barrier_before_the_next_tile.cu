// expect: race
// says: Line 12 has a barrier between the store and the read
// says: write `__syncthreads();` at the end of the loop
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < N; t += 16) {
        int ac = t + threadIdx.x, br = t + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < M && ac < N ? A[row * N + ac] : 0.0f;
        b[threadIdx.y][threadIdx.x] = br < N && col < K ? B[br * K + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
