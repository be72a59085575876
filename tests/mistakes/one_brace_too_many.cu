// expect: compile-error
// says: compile-error  in line 7
// says: expected a declaration; there
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = 1;
}
}
