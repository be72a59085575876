// Blocks draw their tile from a counter in device memory, as persistent kernels do. The last one
// resets the counter. Blocks depend on one another, so the CPU device cannot sample the ranked size,
// and runs a smaller one completely. Tiles are large, as in 08_block_tile_2d, so that it takes seconds.
// expect: message="" quick=small slow=yes
// solve: tile=128x128

constexpr int TILE = 128, DEPTH = 8, EACH = 8;

__device__ unsigned ticket, finished;

extern "C" __global__ void __launch_bounds__(256)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ unsigned drawn;
    __shared__ float tile_a[TILE][DEPTH], tile_b[DEPTH][TILE];
    int thread = threadIdx.y * 16 + threadIdx.x;
    if (thread == 0) drawn = atomicAdd(&ticket, 1u);
    __syncthreads();
    int row = drawn / gridDim.x * TILE, column = drawn % gridDim.x * TILE;

    float sum[EACH][EACH] = {};
    for (int n = 0; n < N; n += DEPTH) {
        for (int i = thread; i < TILE * DEPTH; i += 256) {
            int r = row + i / DEPTH, a = n + i % DEPTH, b = n + i / TILE, c = column + i % TILE;
            tile_a[i / DEPTH][i % DEPTH] = r < M && a < N ? A[(size_t)r * N + a] : 0.0f;
            tile_b[i / TILE][i % TILE] = b < N && c < K ? B[(size_t)b * K + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sum[i][j] +=
                        tile_a[threadIdx.y * EACH + i][k] * tile_b[k][threadIdx.x * EACH + j];
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            int r = row + threadIdx.y * EACH + i, c = column + threadIdx.x * EACH + j;
            if (r < M && c < K) C[(size_t)r * K + c] = sum[i][j];
        }
    if (thread == 0 && atomicAdd(&finished, 1u) == gridDim.x * gridDim.y - 1) {
        ticket = 0;
        finished = 0;
    }
}
