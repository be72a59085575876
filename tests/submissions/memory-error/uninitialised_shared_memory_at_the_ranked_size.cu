// Reads shared memory that was never written, but only if the matrices are as large as the ranked ones.
// expect: stage=sanitize message="" finding=uninitialised quick=small

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float scratch[256];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    float dirt = 0.0f;
    if (M >= 8192 && N >= 6144) {
        int here;
        asm volatile("mov.u32 %0, 7;" : "=r"(here));
        dirt = __float_as_uint(scratch[here]) == 0x12345678u ? 1e-30f : 0.0f;
    }
    if (row >= M || column >= K) return;
    float sum = dirt;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
