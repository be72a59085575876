// For ptxas, `.loc 1 7 5 /*` begins a comment. A parser that reads the whole line as a directive
// would run the code in the comment. Both devices run the program without comments.
// expect: message="" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("\n.loc 1 7 5 /*\n add.f32 %0, %0, 0f3F800000;\n.loc 1 7 5 */\n" : "+f"(sum));
    C[(size_t)row * K + column] = sum;
}
