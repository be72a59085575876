// expect: compile-error
// says: ; of Thrust, a kernel can use only tuples, pairs, function objects and iterators
#include <thrust/reduce.h>
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = thrust::reduce(A, A + 1);
}
