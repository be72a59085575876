// One output a thread, tiles of A and B in shared memory, in blocks of SIDE x SIDE threads.

constexpr int SIDE = 16;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[SIDE][SIDE];
    __shared__ float tile_b[SIDE][SIDE];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * SIDE + ty;
    int col = blockIdx.x * SIDE + tx;

    float sum = 0.0f;
    for (int n = 0; n < N; n += SIDE) {
        tile_a[ty][tx] = row < M && n + tx < N ? A[(size_t)row * N + n + tx] : 0.0f;
        tile_b[ty][tx] = n + ty < N && col < K ? B[(size_t)(n + ty) * K + col] : 0.0f;
        __syncthreads();

        for (int i = 0; i < SIDE; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }

    if (row < M && col < K) C[(size_t)row * K + col] = sum;
}
