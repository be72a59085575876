// The directive is written with a digraph, a comment and a spliced line.
// expect: stage=read message="must name its header literally"

#define FILE_NAME </etc/passwd>
// clang-format off
%: /* nothing */ inc\
lude FILE_NAME
// clang-format on

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
