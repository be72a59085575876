// Requests blocks of 1024 threads in the launch line.
// solve: tile=32x32 block=32x32
// expect: stage=read message="unknown word `block=32x32`"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
