#include "solve.h"
#include <cuda_runtime.h>

static int blocks(int n) { return (n + 15) / 16; }
template <typename T> T* allocate(int n) { T* p; cudaMalloc(&p, n); return p; }
__device__ float twice(float x) { return 2 * x; }
constexpr int square(int x) { return x * x; }
__host__ __device__ int both(int x) { return x; }

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M,
                                             int N, int K) { C[0] = twice(A[0]); }

// A, B, C are device pointers
extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 threadsPerBlock(16, 16);
    dim3 blocksPerGrid(blocks(K), blocks(M));
    matrix_multiplication_kernel<<<blocksPerGrid, threadsPerBlock>>>(A, B, C, M, N, K);
    cudaDeviceSynchronize();
}
