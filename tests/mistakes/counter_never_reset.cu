// expect: wrong-answer
// says: A `__device__` variable keeps its value from launch to launch: set `next_tile` (line 3) back
__device__ int next_tile;

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ int tile;
    int across = (K + 15) / 16, tiles = across * ((M + 15) / 16);
    while (true) {
        if (threadIdx.x == 0 && threadIdx.y == 0) tile = atomicAdd(&next_tile, 1);
        __syncthreads();
        int mine = tile;
        __syncthreads();
        if (mine >= tiles) return;
        int row = mine / across * 16 + threadIdx.y, col = mine % across * 16 + threadIdx.x;
        if (row < M && col < K) {
            float sum = 0.0f;
            for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
            C[row * K + col] = sum;
        }
    }
}
