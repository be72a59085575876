// expect: compile-error
// says: compile-error  in line 4
// says: matrix_multiplication_kernel is a host function here; a kernel begins with `__global__`
void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {}
