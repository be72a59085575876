// expect: race
// says: Write `__syncthreads();` between the two
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[2][16][16], b[2][16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    auto load = [&](int t, int stage) {
        int ac = t + threadIdx.x, br = t + threadIdx.y;
        a[stage][threadIdx.y][threadIdx.x] = row < M && ac < N ? A[row * N + ac] : 0.0f;
        b[stage][threadIdx.y][threadIdx.x] = br < N && col < K ? B[br * K + col] : 0.0f;
    };
    float sum = 0.0f;
    load(0, 0);
    __syncthreads();
    for (int t = 0, stage = 0; t < N; t += 16) {
        load(t + 16, stage);
        for (int n = 0; n < 16; n++) sum += a[stage][threadIdx.y][n] * b[stage][n][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
