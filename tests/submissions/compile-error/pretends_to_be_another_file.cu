// #line names a file of the machine, and an error follows, for which the compiler would show a line of
// that file.
// expect: stage=compile message="" absent="root:x"

#line 1 "/etc/passwd"
this is an error;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
