// Blocks draw their tile from a counter in device memory, as persistent kernels do. The last one
// puts the counter back. Blocks depend on one another, so the CPU device cannot sample the ranked
// size.
// expect: message=""

__device__ unsigned ticket, finished;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ unsigned tile;
    bool first = threadIdx.x == 0 && threadIdx.y == 0;
    if (first) tile = atomicAdd(&ticket, 1u);
    __syncthreads();
    int row = tile / gridDim.x * 16 + threadIdx.y, column = tile % gridDim.x * 16 + threadIdx.x;
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    if (first && atomicAdd(&finished, 1u) == gridDim.x * gridDim.y - 1) {
        ticket = 0;
        finished = 0;
    }
}
