// Two labels of one name, one inside the other's braces: which of them the branch means, two readers
// of PTX need not agree on, and behind one of them lies another kernel.
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
