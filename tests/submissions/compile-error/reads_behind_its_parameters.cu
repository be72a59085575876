// Loads memory after the last parameter, where the driver keeps other data of launches, of this kernel
// or of another.
// expect: message="does not stay inside a parameter" stage=compile line=12

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    int behind;
    asm volatile("ld.param.u32 %0, [matrix_multiplication_kernel_param_5+64];" : "=r"(behind));
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = behind == 7 ? 0.0f : sum;
}
