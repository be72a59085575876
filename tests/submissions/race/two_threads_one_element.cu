// Two warps write the same element of shared memory, each its own value, and one of them is used.
// expect: message="" cpu="no barrier between them" finding=race quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ int block_row;
    if (threadIdx.x == 0) block_row = blockIdx.y * 16 + (threadIdx.y & 0);
    if (threadIdx.y == 7) block_row = blockIdx.y * 16;
    __syncthreads();
    int row = block_row + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
