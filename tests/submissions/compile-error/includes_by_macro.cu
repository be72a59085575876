// The name of the file comes from a macro, so a search of the source does not find it.
// expect: stage=read message="must name its header literally"

#define FILE_NAME "/etc/passwd"
#include FILE_NAME

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
