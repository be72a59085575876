// A file name with an escaped quote: parsers disagree on the end of the string.
// expect: message="unreadable PTX" stage=compile

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile(".file 9 \"a\\\" ; add.f32 %0, %0, 0f3F800000; // \"" : "+f"(sum));
    C[(size_t)row * K + column] = sum;
}
