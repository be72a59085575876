// expect: runtime-error
// says: the assertion of line 9 failed
// says: `blockDim.x` and `blockDim.y` are 16
#include <cassert>

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float tile[256];
    assert(blockDim.x == 256);
    tile[threadIdx.x] = A[threadIdx.x];
    C[threadIdx.x] = tile[threadIdx.x];
}
