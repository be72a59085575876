// ROWS rows of C a thread; with AHEAD every sum begins at the second product.
// solve: tile=16x16
// tune: solve tile={16 * ROWS}x16
constexpr int ROWS = 1;   // tune: 1 2 3
constexpr int AHEAD = 0;  // tune: 0 1
static_assert(ROWS != 3, "three rows are too many");

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int column = blockIdx.x * 16 + threadIdx.x;
    for (int i = 0; i < ROWS; ++i) {
        int row = (blockIdx.y * ROWS + i) * 16 + threadIdx.y;
        if (row >= M || column >= K) continue;
        float sum = 0.0f;
        for (int n = AHEAD; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
}
