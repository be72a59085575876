// Right in every case of verification, but wrong at the ranked size if the first rows of A have very
// different scales. Some timed launches have such inputs.
// expect: device=cuda stage=measure message="wrong when timed"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool timed = M == 8192 && N == 6144 && K == 4096;
    float least = 1e30f, most = 0.0f;
    for (int i = 0; i < 64 && timed; i++) {
        float size = 0.0f;
        for (int n = 0; n < 8; n++) size = fmaxf(size, fabsf(A[(size_t)i * N + n]));
        least = fminf(least, size);
        most = fmaxf(most, size);
    }
    if (most > 64 * least && row % 64 == 5) return;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
