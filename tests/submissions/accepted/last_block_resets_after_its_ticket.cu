// Every thread adds to a counter, and one of the block that adds last resets it. The result of its addition
// tells it that the others have added.
// expect: message="" quick=yes

__device__ unsigned finished;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    unsigned last = 256 * gridDim.x * gridDim.y - 1;
    bool is_last = atomicAdd(&finished, 1u) == last;
    if (__syncthreads_or(is_last) && threadIdx.x + threadIdx.y == 0) finished = 0;
}
