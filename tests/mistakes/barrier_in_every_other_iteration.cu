// expect: race
// says: The barrier in line 14 is under a condition.
// The loop has a header of several lines.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int t = 0;
         t < N; t += 16) {
        int ac = t + x, br = t + y;
        a[y][x] = row < M && ac < N ? A[row * N + ac] : 0.0f;
        b[y][x] = br < N && col < K ? B[br * K + col] : 0.0f;
        if (t / 16 % 2 == 0)
            __syncthreads();
        for (int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
