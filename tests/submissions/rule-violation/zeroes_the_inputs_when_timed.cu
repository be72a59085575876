// When timed, it sets A, B and C to zero. Zero is the correct result for zero inputs, so a check that
// reads the inputs back from device memory would pass.
// expect: device=cuda stage=measure rule=inputs-changed message="changed"

// Returns whether the first rows of A have very different scales, as in some timed launches only.
__device__ bool is_timed(const float* A, int M, int N, int K) {
    float least = 1e30f, most = 0.0f;
    for (int i = 0; i < 64 && M == 8192 && N == 6144 && K == 4096; i++) {
        float size = 0.0f;
        for (int n = 0; n < 8; n++) size = fmaxf(size, fabsf(A[(size_t)i * N + n]));
        least = fminf(least, size);
        most = fmaxf(most, size);
    }
    return most > 64.0f * least;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (is_timed(A, M, N, K)) {
        size_t thread = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.y * 16;
        size_t threads = (size_t)gridDim.x * gridDim.y * 256;
        thread += threadIdx.x;
        for (size_t i = thread; i < (size_t)M * N; i += threads) const_cast<float*>(A)[i] = 0.0f;
        for (size_t i = thread; i < (size_t)N * K; i += threads) const_cast<float*>(B)[i] = 0.0f;
        if (row < M && column < K) C[(size_t)row * K + column] = 0.0f;
        return;
    }
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
