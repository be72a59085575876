// A race that gives the correct result, and only if the special registers are those of a real GPU: many
// multiprocessors, and nanoseconds since 1970. A kernel must not recognise the CPU device by them.
// expect: stage=sanitize message="" finding=race quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float flag[2];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    int multiprocessors, own, here, there;
    long long now;
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    bool alone = multiprocessors < 2 || own >= multiprocessors || now < 1000000000000000000;
    asm volatile("mov.u32 %0, 0;" : "=r"(here));
    asm volatile("mov.u32 %0, 0;" : "=r"(there));
    if (!alone || threadIdx.x + threadIdx.y == 0) flag[here] = 1.0f;
    if (alone) __syncthreads();
    float one = flag[there];
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum * one;
}
