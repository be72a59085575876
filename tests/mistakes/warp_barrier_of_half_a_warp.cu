// expect: race
// says: The `__syncwarp` in line 14 orders only the lanes that its mask names.
// Each warp has two rows of the tile, which only its own threads share.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    int other = y ^ 1, other_row = blockIdx.y * 16 + other;
    unsigned half = y % 2 == 0 ? 0x0000ffffu : 0xffff0000u;
    float sum = 0.0f;
    for (int t = 0; t < N; t += 16) {
        int n = t + x;
        a[other][x] = other_row < M && n < N ? A[other_row * N + n] : 0.0f;
        // The two rows of a warp have exchanged their places.
        __syncwarp(half);
        for (int i = 0; i < 16 && t + i < N; i++) if (col < K) sum += a[y][i] * B[(t + i) * K + col];
        __syncwarp();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
