// 16x16 tiles of A and B in shared memory, with all bounds checked.
#define TILE 16
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int start = 0; start < N; start += TILE) {
        As[ty][tx] = row < M && start + tx < N ? A[row * N + start + tx] : 0.0f;
        Bs[ty][tx] = start + ty < N && column < K ? B[(start + ty) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += As[ty][i] * Bs[i][tx];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
