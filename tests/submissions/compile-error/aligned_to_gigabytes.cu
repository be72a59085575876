// A variable with an alignment of 2 GiB, for which ptxas and nvdisasm take minutes.
// expect: message="an alignment of 2147483648 bytes" stage=compile

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{ .shared .align 2147483648 .b8 x[4]; st.shared.f32 [x], %0; }" ::"f"(sum));
    C[(size_t)row * K + column] = sum;
}
