// Right on every case of verification, wrong at the ranked size where a row ends larger than it begins:
// such inputs are among those of timed launches.
// expect: device=cuda stage=measure message="wrong when timed"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool timed = M == 8192 && N == 6144 && K == 4096;
    float begins = timed ? fabsf(A[0]) + fabsf(A[1]) + fabsf(A[2]) : 0.0f;
    float ends = timed ? fabsf(A[N - 1]) + fabsf(A[N - 2]) + fabsf(A[N - 3]) : 0.0f;
    for (int i = 1; i < 64 && timed; i++) {
        begins = fmaxf(begins, fabsf(A[(size_t)i * N]));
        ends = fmaxf(ends, fabsf(A[(size_t)i * N + N - 1]));
    }
    if (ends > 4 * begins && row % 64 == 5) return;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
