#include <cassert>
// An assertion that fails.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    assert(M != 17);
    C[0] = A[0];
}
