// solve: tile=64x64
#include <mma.h>
using namespace nvcuda;
template <typename Fragment> __device__ void split(Fragment& high, Fragment& low) {
#pragma unroll
    for (int i = 0; i < high.num_elements; i++) {
        float whole = high.x[i];
        high.x[i] = wmma::__float_to_tf32(whole);
        low.x[i] = wmma::__float_to_tf32(whole - high.x[i]);
    }
}
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ __align__(32) float a[64][24], b[16][72], c[64][72];
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32;
    int top = blockIdx.y * 64, left = blockIdx.x * 64, row = warp / 2 * 16, col = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum[2];
    wmma::fill_fragment(sum[0], 0.0f);
    wmma::fill_fragment(sum[1], 0.0f);
    for (int n = 0; n < N; n += 16) {
        for (int i = thread; i < 1024; i += 256) {
            int r = i / 16, k = i % 16;
            a[r][k] = top + r < M && n + k < N ? A[(top + r) * N + n + k] : 0.0f;
            k = i / 64;
            b[k][i % 64] = n + k < N && left + i % 64 < K ? B[(n + k) * K + left + i % 64] : 0.0f;
        }
        __syncthreads();
        wmma::fragment<wmma::accumulator, 16, 16, 8, float> part[2];
        wmma::fill_fragment(part[0], 0.0f);
        wmma::fill_fragment(part[1], 0.0f);
#pragma unroll
        for (int k = 0; k < 16; k += 8) {
            wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> p, p2;
            wmma::load_matrix_sync(p, &a[row][k], 24);
            split(p, p2);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> q,
                    q2;
                wmma::load_matrix_sync(q, &b[k][col + 16 * j], 72);
                split(q, q2);
                wmma::mma_sync(part[j], p2, q, part[j]);
                wmma::mma_sync(part[j], p, q2, part[j]);
                wmma::mma_sync(part[j], p, q, part[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int i = 0; i < sum[j].num_elements; i++) sum[j].x[i] += part[j].x[i];
        __syncthreads();
    }
    wmma::store_matrix_sync(&c[row][col], sum[0], 72, wmma::mem_row_major);
    wmma::store_matrix_sync(&c[row][col + 16], sum[1], 72, wmma::mem_row_major);
    __syncthreads();
    for (int i = thread; i < 4096; i += 256)
        if (top + i / 64 < M && left + i % 64 < K)
            C[(top + i / 64) * K + left + i % 64] = c[i / 64][i % 64];
}
