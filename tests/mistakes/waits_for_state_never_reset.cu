// expect: time-limit
// says: did not end within
// says: set `arrived` (line 4) back before the kernel ends
__device__ int arrived;

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) != gridDim.x * gridDim.y) {
    }
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
