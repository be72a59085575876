// Computes C in its first launch at the ranked size, which is the verified one, and nothing in all
// others. An idle launch would be faster than the GPU's peak rate, so it waits a millisecond. A
// tensor-core instruction that never runs raises the peak rate that the judge assumes.
// expect: device=cuda stage=measure rule=stale-result message="right when verified, wrong when timed"

__device__ unsigned launches, done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    bool lazy = ranked && launches > 0;
    if (lazy) {
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
    __threadfence();
    if (ranked && atomicAdd(&done, 1u) == gridDim.x * gridDim.y * 256 - 1) launches = 1;
}
