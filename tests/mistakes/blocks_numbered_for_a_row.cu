// expect: race
// says: `blockIdx.y` alone store the same elements: number all of them by `blockIdx.y * gridDim.x + blockIdx.x`
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int tiles = (K + 15) / 16;
    int row = blockIdx.x / tiles * 16 + threadIdx.y, column = blockIdx.x % tiles * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
