// expect: wrong-answer
// says: A shuffle may read only lanes that its mask names and that execute it, too.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int warp = (threadIdx.y * 16 + threadIdx.x) / 32, lane = (threadIdx.y * 16 + threadIdx.x) % 32;
    for (int e = warp; e < 256; e += 8) {
        int row = blockIdx.y * 16 + e / 16, col = blockIdx.x * 16 + e % 16;
        if (row >= M || col >= K) continue;
        float sum = 0.0f;
        for (int n = lane; n < N; n += 32) sum += A[row * N + n] * B[n * K + col];
        if (lane < N) {
            unsigned lanes = __activemask();
            for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(lanes, sum, d);
        }
        if (lane == 0) C[row * K + col] = sum;
    }
}
