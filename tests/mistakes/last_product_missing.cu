// expect: wrong-answer
// says: as if each sum had 15 products in place of 16
#include <cuda_runtime.h>
#include <stdio.h>

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < K) {
        float acc = 0.f;
        for (int i = 0; i < N - 1; ++i) acc += A[row * N + i] * B[i * K + col];
        C[row * K + col] = acc;
    }
}
