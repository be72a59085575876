// expect: race
// says: Write `__syncthreads();` between the two
// An mbarrier or cuda::barrier would be too much here.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int first = 0; first < N; first += 16) {
        __syncthreads();
        a[y][x] = row < M && first + x < N ? A[(size_t)row * N + first + x] : 0.0f;
        for (int n = first; n < min(first + 16, N); n++)
            if (column < K) sum += a[y][n - first] * B[(size_t)n * K + column];
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
