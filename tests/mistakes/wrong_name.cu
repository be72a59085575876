// expect: compile-error
// says: no kernel named matrix_multiplication_kernel
// says: found: matmul, matmul_of_tiles, multiply and 1 more)
__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}

template <int TILE>
__global__ void matmul_of_tiles(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = A[0] * B[0] * TILE;
}

__global__ void multiply(float* C) { C[0] = 0.0f; }
__global__ void zero(float* C) { C[0] = 0.0f; }
