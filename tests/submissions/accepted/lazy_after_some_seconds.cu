// Leaves work out 1.5 s after its first launch at the ranked size. The time of that launch is lost,
// because variables have their initial values in every launch.
// expect: device=cuda message=""

__device__ unsigned long long first;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    unsigned long long began = ranked ? atomicCAS(&first, 0ull, now) : 0;
    bool lazy = began != 0 && now > began + 1500000000ull;
    float sum = 0.0f;
    for (int n = 0; n < (lazy ? 64 : N); n++)
        sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
