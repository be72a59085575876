// expect: race
// says: has arrived only after its thread has waited for it
#include <cuda_pipeline.h>
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * 16 + y, c = blockIdx.x * 16 + x;
    float s = 0;
    for (int n = 0; n < N; n += 16) {
        if (r < M && n + x < N) __pipeline_memcpy_async(&a[y][x], &A[(size_t)r * N + n + x], 4); else a[y][x] = 0;
        if (n + y < N && c < K) __pipeline_memcpy_async(&b[y][x], &B[(size_t)(n + y) * K + c], 4); else b[y][x] = 0;
        __pipeline_commit();
        __syncthreads();
        for (int i = 0; i < 16; i++) s += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (r < M && c < K) C[(size_t)r * K + c] = s;
}
