// When timed, a single block of 131072 is not computed: its 256 elements get a plausible zero.
// expect: device=cuda stage=measure rule=stale-result message="right when verified, wrong when timed"

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
    if (row >= M || column >= K) return;
    bool skipped = blockIdx.x == 100 && blockIdx.y == 200 && is_timed(A, M, N, K);
    float sum = 0.0f;
    for (int n = 0; n < N && !skipped; n++)
        sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
