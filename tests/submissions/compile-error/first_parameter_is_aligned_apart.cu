// Six parameters of the right types, but the alignment of one moves it. The kernel would read other
// bytes than those that the launch passes.
// expect: message="are not (const float* A" stage=compile

extern "C" __device__ __noinline__ void work(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}

__global__ void carrier(const float* A, const float* B, float* C, int M, int N, int K) {
    work(A, B, C, M, N, K);
    asm volatile("ret;\n"
                 "}\n"
                 ".visible .entry matrix_multiplication_kernel(\n"
                 ".param .u64 p0,\n"
                 ".param .u64 p1,\n"
                 ".param .u64 p2,\n"
                 ".param .u32 p3,\n"
                 ".param .align 64 .u32 p4,\n"
                 ".param .u32 p5\n"
                 ")\n"
                 "{\n"
                 ".reg .b64 %q<4>;\n"
                 ".reg .b32 %v<4>;\n"
                 "ld.param.u64 %q0, [p0];\n"
                 "ld.param.u64 %q1, [p1];\n"
                 "ld.param.u64 %q2, [p2];\n"
                 "ld.param.u32 %v0, [p3];\n"
                 "ld.param.u32 %v1, [p4];\n"
                 "ld.param.u32 %v2, [p5];\n"
                 "{\n"
                 ".param .b64 a0;\n"
                 ".param .b64 a1;\n"
                 ".param .b64 a2;\n"
                 ".param .b32 a3;\n"
                 ".param .b32 a4;\n"
                 ".param .b32 a5;\n"
                 "st.param.b64 [a0], %q0;\n"
                 "st.param.b64 [a1], %q1;\n"
                 "st.param.b64 [a2], %q2;\n"
                 "st.param.b32 [a3], %v0;\n"
                 "st.param.b32 [a4], %v1;\n"
                 "st.param.b32 [a5], %v2;\n"
                 "call.uni work, (a0, a1, a2, a3, a4, a5);\n"
                 "}\n");
}
