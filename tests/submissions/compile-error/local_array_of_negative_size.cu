// An array of negative size, which as an unsigned bound would permit every address.
// expect: message="an array of -4096 elements" stage=compile

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{ .local .align 8 .b8 x[-4096]; ld.local.f32 %0, [x]; }" : "+f"(sum));
    C[(size_t)row * K + column] = sum;
}
