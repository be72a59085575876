// The lanes of half a warp share one element's products and add up by shuffles.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int lane = threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    for (int c = 0; c < 16; ++c) {
        int column = blockIdx.x * 16 + c;
        float sum = 0.0f;
        for (int i = lane; i < N && row < M && column < K; i += 16) sum += A[row * N + i] * B[i * K + column];
        for (int step = 8; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (lane == 0 && row < M && column < K) C[row * K + column] = sum;
    }
}
