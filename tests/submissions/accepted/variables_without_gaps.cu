// Honest: its variables follow each other without gaps. A GPU allows no copy that crosses from one
// into the next.
// expect: message="" quick=yes

__device__ float halves[64] = {0.5f};
__device__ float twos[64] = {2.0f};
__device__ int tiles[64];
__device__ int done[64];

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(&tiles[blockIdx.x % 64], 1);
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
        C[row * K + column] = sum * halves[0] * twos[0];
    }
    if (threadIdx.x == 0) atomicAdd(&done[blockIdx.x % 64], 1);
}
