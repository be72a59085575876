// expect: race
// says: has not delivered, because it was not waited for
// says: `__syncthreads();` does not replace it
#include <cuda/barrier>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    __shared__ Barrier ready;
    int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * 16 + y, c = blockIdx.x * 16 + x;
    if (x + y == 0) init(&ready, 256);
    __syncthreads();
    float s = 0;
    for (int n = 0; n < N; n += 16) {
        if (r < M && n + x < N) cuda::memcpy_async(&a[y][x], &A[(size_t)r * N + n + x], 4, ready); else a[y][x] = 0;
        if (n + y < N && c < K) cuda::memcpy_async(&b[y][x], &B[(size_t)(n + y) * K + c], 4, ready); else b[y][x] = 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) s += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (r < M && c < K) C[(size_t)r * K + c] = s;
}
