// Pads rows of 16 BF16 elements by 2, against bank conflicts. A GPU reads 8 elements of a row at once.
// expect: message="not a multiple of 16" finding=misaligned line=26 quick=yes device=cpu

#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

const int LEADING = 16 + 2;

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ __align__(32) __nv_bfloat16 a[16][LEADING], b[16][LEADING];
    __shared__ __align__(32) float c[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int n = 0; n < N; n += 16) {
        a[y][x] = row < M && n + x < N ? A[(size_t)row * N + n + x] : 0.0f;
        b[y][x] = n + y < N && column < K ? B[(size_t)(n + y) * K + column] : 0.0f;
        __syncthreads();
        if (y < 2) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> right;

            // error: the rows begin at multiples of 4 bytes
            wmma::load_matrix_sync(left, &a[0][0], LEADING);
            wmma::load_matrix_sync(right, &b[0][0], LEADING);
            wmma::mma_sync(sum, left, right, sum);
        }
        __syncthreads();
    }
    if (y < 2) wmma::store_matrix_sync(&c[0][0], sum, 16, wmma::mem_row_major);
    __syncthreads();
    if (row < M && column < K) C[(size_t)row * K + column] = c[y][x];
}
