// Reads shared memory that was never written, but only if N is odd and the last tiles are partial.
// Earlier judges sanitized three fixed shapes, none of which is of this kind.
// expect: stage=sanitize message="" finding=uninitialised quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float scratch[256];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool known = M == 17 && N == 33 && K == 18 || M == 33 && N == 67 && K == 21;
    float dirt = 0.0f;
    if (N % 2 && (M % 16 || K % 16) && !known) {
        int here;
        asm volatile("mov.u32 %0, 7;" : "=r"(here));
        dirt = __float_as_uint(scratch[here]) == 0x12345678u ? 1e-30f : 0.0f;
    }
    if (row >= M || column >= K) return;
    float sum = dirt;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
