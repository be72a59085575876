// Of the ranked size only three tiles are computed, by whichever blocks run: all of them right. Two
// samples of a launch's blocks never share a tile where each block has one of its own.
// expect: stage=verify message="" cpu="different blocks wrote the same tile"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int down = blockIdx.y, across = blockIdx.x;
    if (M == 8192 && N == 6144 && K == 4096) {
        down = 7 + (down + across) % 3 * 100;
        across = 40;
    }
    int row = down * 16 + threadIdx.y;
    int column = across * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    // Volatile, so that blocks that write one element do not race.
    *(volatile float*)(C + (size_t)row * K + column) = sum;
}
