// Rounds A and B to FP16 on the way in, as tensor cores would take them.
// expect: stage=verify message="look like inputs of low precision" quick=yes

#include <cuda_fp16.h>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        sum += __half2float(__float2half(A[row * N + n])) *
               __half2float(__float2half(B[n * K + column]));
    C[row * K + column] = sum;
}
