// An array whose dimensions multiply to slightly more than 2^64 bytes.
// expect: message="a variable may take" stage=compile

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{ .local .b8 x[4294967296][4294967297]; ld.local.f32 %0, [x]; }" : "+f"(sum));
    C[(size_t)row * K + column] = sum;
}
