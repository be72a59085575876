// expect: memory-error
// says: write 0 where a tile extends beyond A or B
#define T 16
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[T][T], Bs[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < (N + T - 1) / T; t++) {
        if (row < M && t * T + threadIdx.x < N) As[threadIdx.y][threadIdx.x] = A[row * N + t * T + threadIdx.x];
        if (col < K && t * T + threadIdx.y < N) Bs[threadIdx.y][threadIdx.x] = B[(t * T + threadIdx.y) * K + col];
        __syncthreads();
        for (int k = 0; k < T; k++) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
