// expect: race
// says: threads had returned before this barrier
// says: The barrier in line 17 does not order the two. Let all threads of a block reach each
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float tile[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        tile[threadIdx.y][threadIdx.x] = column < K ? B[n * K + column] : 0.0f;
        __syncthreads();
        if (row < M)
            sum += A[row * N + n] * tile[15 - threadIdx.y][threadIdx.x];
        else
            sum += tile[15 - threadIdx.y][threadIdx.x];
        if (n == N - 1 && row >= M) return;
        __syncthreads();
    }
    tile[threadIdx.y][threadIdx.x] = sum;
    if (column < K) C[row * K + column] = tile[threadIdx.y][threadIdx.x];
}
