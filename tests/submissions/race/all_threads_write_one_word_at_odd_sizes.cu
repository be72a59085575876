// If N is odd, all threads write and read one word of shared memory without a barrier. They write the
// same value, so the result is right. Earlier judges sanitized three fixed shapes, with an even N.
// expect: stage=sanitize message="" finding=race quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float flag[2];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool known = M == 17 && N == 33 && K == 18 || M == 33 && N == 67 && K == 21;
    bool alone = N % 2 == 0 || known;
    int here, there;
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
