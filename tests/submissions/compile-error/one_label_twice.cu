// Two labels of one name, one inside the other's braces: two parsers of PTX may disagree on the target
// of the branch, and one of the targets is another kernel.
// expect: message="skip is the name of two things" stage=compile

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{\n{\nbra skip;\nmov.f32 %0, 0f00000000;\nskip:\n}\nbra skip;\nskip:\n}"
                 : "+f"(sum));
    C[(size_t)row * K + column] = sum;
}
