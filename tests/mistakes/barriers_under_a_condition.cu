// expect: race
// says: Let all threads of a block reach each barrier:
#define TILE 16
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int t = 0; t < (N + TILE - 1) / TILE; ++t) {
        As[ty][tx] = row < M && t * TILE + tx < N ? A[row * N + t * TILE + tx] : 0.0f;
        Bs[ty][tx] = t * TILE + ty < N && col < K ? B[(t * TILE + ty) * K + col] : 0.0f;
        if (row < M && col < K) {
            __syncthreads();
            for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
            __syncthreads();
        }
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
