// The products are exact, the sum is kept in FP16.
// expect: stage=verify message="wrong at" quick=yes

#include <cuda_fp16.h>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    __half sum = __float2half(0.0f);
    for (int n = 0; n < N; n++)
        sum = __float2half(__half2float(sum) + A[row * N + n] * B[n * K + column]);
    C[row * K + column] = __half2float(sum);
}
