// expect: race
// says: Line 13 has a barrier between the store and the read
// says: write `__syncwarp();` at the end of the loop
// Each warp has two rows of the tile, which only its own threads share.
#define FULL_MASK 0xffffffff
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int t = 0; t < N; t += 16) {
        int n = t + x;
        a[y][x] = row < M && n < N ? A[row * N + n] : 0.0f;
        __syncwarp(FULL_MASK);
        for (int i = 0; i < 16 && t + i < N; i++) if (col < K) sum += a[y][i] * B[(t + i) * K + col];
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
