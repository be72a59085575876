// expect: compile-error
// says: identifier "Tensor" is undefined; if "tensor.h" (line 3) declares it, write it into
#include "tensor.h"
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    Tensor a(A);
}
