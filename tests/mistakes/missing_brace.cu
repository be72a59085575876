// expect: compile-error
// says: compile-error  in line 4
// says: the `{` of line 4 is never closed; a `}` is missing after it
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    if (M) {
        C[0] = 1;
}
