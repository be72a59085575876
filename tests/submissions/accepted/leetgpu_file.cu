// A public solution as LeetGPU accepts it. Its host code and host headers are ignored.
// expect: message="" quick=yes

#include <cuda_runtime.h>
#include <stdio.h>
#include "solve.h"

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
}

extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 threadsPerBlock(16, 16);
    dim3 blocksPerGrid((K + 15) / 16, (M + 15) / 16);
    matrix_multiplication_kernel<<<blocksPerGrid, threadsPerBlock>>>(A, B, C, M, N, K);
    cudaDeviceSynchronize();
    printf("system(\"rm -rf /\")\n");
}
