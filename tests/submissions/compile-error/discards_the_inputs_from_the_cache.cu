// Discards A from the L2 cache at its end. By PTX this writes undefined values, so A may or may not
// be changed when it is compared.
// expect: stage=compile message="`discard.global.L2` leaves memory undefined" line=14

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
    const float* line = A + ((size_t)row * N & ~31);
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(line) : "memory");
}
