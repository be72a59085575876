// Threads outside C return before the barrier.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float s[256];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    s[threadIdx.y * 16 + threadIdx.x] = A[0];
    __syncthreads();
    C[row * K + column] = s[0];
}
