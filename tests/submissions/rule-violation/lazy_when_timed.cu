// Right when verified. At the ranked size, it does nothing if the rows of A have different scales, which
// only timed inputs have. An idle launch would be faster than the GPU's peak rate, so it waits a
// millisecond. A tensor-core instruction that never runs raises the peak rate that the judge assumes.
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
    if (is_timed(A, M, N, K)) {
        if (row < M && column < K) C[(size_t)row * K + column] = 0.0f;
        if (row == 0 && column == 0) {
            unsigned long long start, now;
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
            do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
            while (now - start < 1000000);
        }
        return;
    }
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    if (N == -1) {
        float c[4] = {};
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                     "{%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(row));
        C[0] = c[0];
    }
}
