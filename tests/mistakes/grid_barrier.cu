// expect: runtime-error
// says: needs a cooperative launch
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float s = 0;
    if (row < M && col < K)
        for (int n = 0; n < N; n++) s += A[(size_t)row * N + n] * B[(size_t)n * K + col];
    cg::this_grid().sync();
    if (row < M && col < K) C[(size_t)row * K + col] = s;
}
