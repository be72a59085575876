// At the ranked size only three tiles are computed. The stores are volatile, like those of flags, so that
// blocks seem to depend on one another, and the ranked size would not be sampled.
// expect: stage=verify message="wrong at" quick=small

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    if (ranked && (blockIdx.x != 20 || blockIdx.y % 20 != 7 || blockIdx.y > 47)) return;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    volatile float* c = C + (size_t)row * K + column;
    *c = sum;
}
