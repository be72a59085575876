// expect: race
// says: `threadIdx.y` alone store the same elements: number all of them by `threadIdx.y * 16 + threadIdx.x`
// solve: tile=8x32
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int id = threadIdx.y * blockDim.x + threadIdx.x, width = 32;
    int row = blockIdx.y * 8 + id / width, column = blockIdx.x * width + id % width;
    float sum = 0.0f;
    if (row < M && column < K)
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    row = blockIdx.y * 8 + threadIdx.x / width, column = blockIdx.x * width + threadIdx.x % width;
    if (row < M && column < K) C[row * K + column] = sum;
}
