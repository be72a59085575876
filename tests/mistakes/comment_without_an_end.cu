// expect: compile-error
// says: compile-error  in line 5
// says: comment unclosed at end of file
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    /* about this
    C[0] = 1;
}
