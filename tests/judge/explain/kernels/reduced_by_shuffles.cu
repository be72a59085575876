extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int thread = threadIdx.y * 16 + threadIdx.x, lane = thread % 32, warp = thread / 32;
    int top = blockIdx.y * 16 + warp % 2 * 8;
    for (int i = warp / 2; i < 16; i += 4) {
        int col = blockIdx.x * 16 + i;
        float sum[8] = {};
        for (int n = lane; n < N; n += 32) {
            float b = col < K ? B[n * K + col] : 0.0f;
#pragma unroll
            for (int r = 0; r < 8; r++) sum[r] += top + r < M ? A[(top + r) * N + n] * b : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < 8; r++) {
            for (int step = 16; step; step /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], step);
            if (lane == 0 && top + r < M && col < K) C[(top + r) * K + col] = sum[r];
        }
    }
}
