// Inline PTX with directives by which assemblers read files.
// expect: stage=compile message="unreadable PTX" absent="root:x"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    asm volatile("\n#include \"/etc/passwd\"\n"
                 ".include \"/etc/passwd\"\n");
    C[0] = A[0] * B[0];
}
