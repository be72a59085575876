// Looks at the clock: honest for 1.5 s after its first launch at the ranked size, as long as a
// judge may take to check, and lazy ever after.
// expect: device=cuda stage=measure rule=stale-result message="right when verified, wrong when timed"

__device__ unsigned long long first;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    if (ranked) atomicCAS(&first, 0ull, now);
    bool lazy = ranked && first != 0 && now > first + 1500000000ull;
    float sum = 0.0f;
    for (int n = 0; n < (lazy ? 64 : N); n++)
        sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
