// The compiler reads a row's padding next to its last elements, and uses nothing of it.
// expect: message="" quick=cpu
// solve: tile=32x32 shared_memory=8448

extern __shared__ float tiles[];

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    constexpr int TILE = 32, PADDED = TILE + 1;
    float* a = tiles;
    float* b = tiles + TILE * PADDED;
    int thread = threadIdx.y * 16 + threadIdx.x, lane = thread % 32, warp = thread / 32;
    int column = blockIdx.x * TILE + lane;
    float sums[4] = {};
    for (int n = 0; n < N; n += TILE) {
        for (int i = warp; i < TILE; i += 8) {
            int row = blockIdx.y * TILE + i;
            a[i * PADDED + lane] = row < M && n + lane < N ? A[row * N + n + lane] : 0.0f;
            b[i * PADDED + lane] = n + i < N && column < K ? B[(n + i) * K + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            for (int i = 0; i < 4; i++)
                sums[i] += a[(warp * 4 + i) * PADDED + k] * b[k * PADDED + lane];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        int row = blockIdx.y * TILE + warp * 4 + i;
        if (row < M && column < K) C[row * K + column] = sums[i];
    }
}
