// A whole program of which one kernel uses a library that a submission does not get. The judge does not
// launch that kernel, so it need not compile, and neither need the function that it calls.
// expect: message="" warning="`drawn` does not compile and is left out" quick=yes

#include <cstdio>
#include <cuda_runtime.h>
#include <random_numbers.cuh>

__device__ float drawn(RandomState* state) { return 2 * random_uniform(state) - 1; }

__global__ void init(float* p, int n, unsigned long long seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    RandomState state;
    random_init(seed, i, 0, &state);
    if (i < n) p[i] = drawn(&state);
}

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0;
    for (int n = 0; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + col];
    C[(size_t)row * K + col] = sum;
}
int main() {
    float *a, *b, *c;
    int n = 1024;
    cudaMalloc(&a, n * n * 4);
    cudaMalloc(&b, n * n * 4);
    cudaMalloc(&c, n * n * 4);
    init<<<4096, 256>>>(a, n * n, 1);
    init<<<4096, 256>>>(b, n * n, 2);
    dim3 grid((n + 15) / 16, (n + 15) / 16), block(16, 16);
    matrix_multiplication_kernel<<<grid, block>>>(a, b, c, n, n, n);
    cudaDeviceSynchronize();
}
