// Every block adds to a counter, and the block of the highest number resets it without knowing that the
// others have added. Its own addition is the last one wherever blocks run in order.
// expect: message="" cpu="no release and acquire between the two blocks" finding=race quick=cpu device=cpu

__device__ unsigned finished;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    atomicAdd(&finished, 1u);
    __syncthreads();
    bool is_last = blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1;
    if (threadIdx.x + threadIdx.y == 0 && is_last) finished = 0;
}
