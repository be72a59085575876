// expect: race
// says: The lanes that a warp-wide instruction reads must reach it, too
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int lane = (threadIdx.y * 16 + threadIdx.x) % 32, first = blockIdx.y * 16 + threadIdx.y / 2 * 2;
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        if (col >= K || row >= M) break;
        float a = A[(size_t)row * N + n];
        sum += __shfl_sync(0xffffffff, a, (row - first) * 16) * B[(size_t)n * K + col];
    }
    unsigned inside = __ballot_sync(0xffffffff, row < M && col < K);
    if (inside >> lane & 1) C[(size_t)row * K + col] = sum;
}
