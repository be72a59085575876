// expect: race
// says: the missing one is after the read
// solve: tile=32x32
__device__ unsigned head;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ unsigned mine;
    unsigned tx = (K + 31) / 32, tiles = tx * ((M + 31) / 32);
    for (;;) {
        if (!threadIdx.x && !threadIdx.y) mine = atomicAdd(&head, 1u);
        __syncthreads();
        unsigned tile = mine;
        if (tile >= tiles) return;
        for (int e = 0; e < 4; e++) {
            int r = tile / tx * 32 + threadIdx.y * 2 + e / 2, c = tile % tx * 32 + threadIdx.x * 2 + e % 2;
            float s = 0;
            if (r < M && c < K) { for (int n = 0; n < N; n++) s += A[(size_t)r * N + n] * B[(size_t)n * K + c]; C[(size_t)r * K + c] = s; }
        }
    }
}
