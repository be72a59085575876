// expect: compile-error
// says: compile-error  in line 5
// says: identifier "curandState" is undefined; if "curand_kernel.h" (line 4) declares
#include <curand_kernel.h>
__device__ void draw(curandState* s) {}
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) { draw(0); }
