// Stores whole fragments of wmma into C whatever K is: pairs of elements are misaligned if K is odd.
// expect: message="C[" finding=misaligned quick=yes

#include <mma.h>
using namespace nvcuda;

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ __align__(32) float tile[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    if (row < M && column < K)
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    tile[y][x] = sum;
    __syncthreads();
    if (blockIdx.y * 16 + 16 > M || blockIdx.x * 16 + 16 > K) {
        if (row < M && column < K) C[(size_t)row * K + column] = sum;
    } else if (y < 2) {
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> all;
        wmma::load_matrix_sync(all, &tile[0][0], 16, wmma::mem_row_major);
        wmma::store_matrix_sync(C + (size_t)blockIdx.y * 16 * K + blockIdx.x * 16, all, K,
                                wmma::mem_row_major);
    }
}
