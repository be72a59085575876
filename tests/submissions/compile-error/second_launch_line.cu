// solve: tile=16x16
// solve: tile=32x32
// Two launch lines, against judges in which one part uses the first and another part the last.
// expect: stage=read message="a second launch line"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
