// expect: compile-error
// says: compile-error  in line 5
// says: expected an expression; write the value between `?` and `:`
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = M ?: 1;
}
