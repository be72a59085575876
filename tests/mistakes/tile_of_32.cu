// expect: memory-error
// says: A block has 16×16 threads, whatever its tile
// says: takes several loads per thread
#define TILE 32

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < (N + TILE - 1) / TILE; t++) {
        int ac = t * TILE + threadIdx.x, br = t * TILE + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < M && ac < N ? A[row * N + ac] : 0.0f;
        b[threadIdx.y][threadIdx.x] = br < N && col < K ? B[br * K + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
