// The parameters are pointers to double, so the kernel solves another problem.
// expect: stage=read message="it must take (const float* A"

extern "C" __global__ void matrix_multiplication_kernel(const double* A, const double* B, double* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
