// expect: compile-error
// says: `template __global__ void matrix_multiplication_kernel<float, int, 16>(const float*, float*, float*, int, int, int);`
template <typename T, class S, int X>
__global__ void matrix_multiplication_kernel(T const* A, T* B, T* C, S m, const S n, int k) {}
