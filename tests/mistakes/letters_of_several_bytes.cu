// expect: compile-error
// says: compile-error  in line 5
// says: unrecognized token U+00E9 (LATIN SMALL LETTER E WITH ACUTE): only comments
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int é = 1, 矩, 阵 = ;
}
