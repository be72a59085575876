// expect: compile-error
// says: compile-error  in line 7
// says: expected a ";"; write one at the end of line 5
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    float s = 0

    C[0] = s;
}
