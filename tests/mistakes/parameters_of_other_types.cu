// expect: compile-error
// says: compile-error  in line 4
// says: matrix_multiplication_kernel takes (const float* A, const float* B, float* C, long long M, int N, int
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, long long M,
 int N, int K) {}
