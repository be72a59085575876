// Copies one tile ahead of its use, and waits for each at a cuda::barrier of its own.
// expect: message="" quick=yes

#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float a[2][16][16], b[2][16][16];
    __shared__ Barrier ready[2];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    if (y == 0 && x < 2) init(&ready[x], 256);
    __syncthreads();
    auto fetch = [&](int stage, int n) {
        a[stage][y][x] = b[stage][y][x] = 0.0f;
        if (row < M && n + x < N)
            cuda::memcpy_async(&a[stage][y][x], &A[(size_t)row * N + n + x], 4, ready[stage]);
        if (n + y < N && column < K)
            cuda::memcpy_async(&b[stage][y][x], &B[(size_t)(n + y) * K + column], 4, ready[stage]);
    };
    float sum = 0.0f;
    fetch(0, 0);
    for (int n = 0, stage = 0; n < N; n += 16, stage ^= 1) {
        if (n + 16 < N) fetch(stage ^ 1, n + 16);
        ready[stage].arrive_and_wait();
        for (int i = 0; i < 16; i++) sum += a[stage][y][i] * b[stage][i][x];
        __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
