// Right in every case of verification, but wrong at the ranked size if one of four rows of A, or of
// columns of B, changes its scale along N. In scored inputs, each row and column has one scale.
// expect: device=cuda stage=measure message="wrong when timed"

__device__ float most_of_eight(const float* x, size_t step) {
    float most = 0.0f;
    for (int i = 0; i < 8; i++) most = fmaxf(most, fabsf(x[i * step]));
    return most;
}

__device__ bool changes(const float* x, int length, size_t step) {
    float least = 1e30f, most = 0.0f;
    for (int part = 0; part < 8; part++) {
        float size = most_of_eight(x + length / 8 * part * step, step);
        least = fminf(least, size);
        most = fmaxf(most, size);
    }
    float size = most_of_eight(x + (length - 8) * step, step);
    return fmaxf(most, size) > 64 * fminf(least, size);
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool timed = M == 8192 && N == 6144 && K == 4096;
    for (int line = 0; line < 4 && timed; line++)
        if (row % 64 == 5 && (changes(A + (size_t)line * N, N, 1) || changes(B + line, N, K)))
            return;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
