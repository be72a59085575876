// expect: race
// says: between two calls that share it, also in a loop
// solve: tile=1x2
#include <cub/cub.cuh>
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    using R = cub::BlockReduce<float, 16, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 16>;
    __shared__ typename R::TempStorage temp;
    int t = threadIdx.y * 16 + threadIdx.x;
    for (int j = 0; j < 2; j++) {
        int c = blockIdx.x * 2 + j;
        float s = 0;
        if (c < K) for (int n = t; n < N; n += 256) s += A[(size_t)blockIdx.y * N + n] * B[(size_t)n * K + c];
        s = R(temp).Sum(s);
        if (t == 0 && c < K) C[(size_t)blockIdx.y * K + c] = s;
    }
}
