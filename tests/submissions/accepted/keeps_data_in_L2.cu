// Reads B with evict_last, to find it in the L2 cache on the next launch. It gains nothing: the
// cache is overwritten and its persisting lines are reset before each timed launch.
// expect: device=cuda message=""

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float b;
        asm volatile("ld.global.L1::evict_last.f32 %0, [%1];"
                     : "=f"(b)
                     : "l"(B + (size_t)n * K + column));
        sum += A[(size_t)row * N + n] * b;
    }
    C[(size_t)row * K + column] = sum;
}
