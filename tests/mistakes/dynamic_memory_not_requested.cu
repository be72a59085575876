// expect: memory-error
// says: of dynamic shared memory (0 bytes)
// says: such as `// solve: shared_memory=2048`
extern __shared__ float sm[];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    float* a = sm; float* b = sm + 256;
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float s = 0;
    for (int t = 0; t < N; t += 16) {
        a[y * 16 + x] = row < M && t + x < N ? A[row * N + t + x] : 0;
        b[y * 16 + x] = col < K && t + y < N ? B[(t + y) * K + col] : 0;
        __syncthreads();
        for (int k = 0; k < 16; k++) s += a[y * 16 + k] * b[k * 16 + x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = s;
}
