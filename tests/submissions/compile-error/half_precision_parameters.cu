// The inputs are declared as half: the kernel solves another problem.
// expect: stage=read message="takes (half*, half*, float*"
#include <cuda_fp16.h>
__global__ void matrix_multiplication_kernel(const half* A, const half* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0;
    for (int i = 0; i < N; ++i) sum += __half2float(A[row * N + i]) * __half2float(B[i * K + col]);
    C[row * K + col] = sum;
}
