// expect: compile-error
// says: identifier "zero" is undefined
#include <cstdio>
#include <cuda_runtime.h>
#include <curand_kernel.h>
__global__ void init(float* p, int n, unsigned long long seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandState state;
    curand_init(seed, i, 0, &state);
    if (i < n) p[i] = curand_uniform(&state);
}
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = zero;
    for (int n = 0; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + col];
    C[(size_t)row * K + col] = sum;
}
