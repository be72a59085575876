// A register that is declared as `%f01`, in addition to the compiler's own `%f<…>`. One parser takes it
// for a new register, and ptxas for another name of `%f1`, which the compiler uses.
// expect: message="%f01 may be another name" stage=compile line=12

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{\n.reg .f32 %f01;\nmov.f32 %f01, 0f3F800000;\n}\n");
    C[(size_t)row * K + column] = sum;
}
