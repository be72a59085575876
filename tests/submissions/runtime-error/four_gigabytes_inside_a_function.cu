// A variable of 4 GiB that is declared in assembly inside the kernel, so no list of the module's
// variables contains it.
// expect: message="a submission gets at most" stage=compile

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{ .global .b8 big[4294967296]; ld.global.u8 %0, [big]; }" : "=r"(row));
    C[(size_t)row * K + column] = sum;
}
