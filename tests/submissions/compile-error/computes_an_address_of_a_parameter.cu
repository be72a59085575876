// Uses a number as the address of a parameter. So it could read the driver's data next to the
// parameters, word by word.
// expect: message="does not stay inside a parameter" stage=compile line=15

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    int found;
    asm volatile("{\n.reg .b64 place;\ncvta.param.u64 place, %1;\nld.u32 %0, [place];\n}"
                 : "=r"(found)
                 : "l"(600ull));
    C[(size_t)row * K + column] = found == 7 ? 0.0f : sum;
}
