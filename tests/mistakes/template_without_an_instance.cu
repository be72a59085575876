// expect: compile-error
// says: `template __global__ void matrix_multiplication_kernel<float, 16>(const float*,
template <typename T, int X> __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {}
