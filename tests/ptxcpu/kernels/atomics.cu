// Splits N over the 16 rows of a block and adds up with atomics in shared memory.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float sums[16];
    int row = blockIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    for (row = blockIdx.y * 16; row < min(M, blockIdx.y * 16 + 16); ++row) {
        if (threadIdx.y == 0) sums[threadIdx.x] = 0.0f;
        __syncthreads();
        float sum = 0.0f;
        for (int i = threadIdx.y; i < N && column < K; i += 16) sum += A[row * N + i] * B[i * K + column];
        atomicAdd(&sums[threadIdx.x], sum);
        __syncthreads();
        if (threadIdx.y == 0 && column < K) C[row * K + column] = sums[threadIdx.x];
        __syncthreads();
    }
}
