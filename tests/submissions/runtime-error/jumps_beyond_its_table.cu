// A jump by a table with an index beyond its end: on a GPU this is undefined, and on the CPU device it
// must not reach the judge's own code.
// expect: message="brx.idx" device=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    asm volatile("{ .reg .u32 index; mov.u32 index, %0;\n"
                 "table: .branchtargets first, second;\n"
                 "brx.idx index, table;\n"
                 "first: bra behind;\n"
                 "second: bra behind;\n"
                 "behind: }" ::"r"(K * 16777619));
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
