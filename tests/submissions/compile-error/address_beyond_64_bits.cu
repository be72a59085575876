// An offset of 2^64 + 4, which ptxas reads as 4.
// expect: message="expected" stage=compile line=11

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{ .local .b8 x[8]; st.local.f32 [x+0x10000000000000004], %0; }" ::"f"(sum));
    C[(size_t)row * K + column] = sum;
}
