// Every block adds to a counter, and the first one waits until all have. Then it resets the counter: its last
// load has observed their additions.
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
    if (threadIdx.x + threadIdx.y > 0) return;
    atomicAdd(&finished, 1u);
    if (blockIdx.x + blockIdx.y > 0) return;
    while (*(volatile unsigned*)&finished < gridDim.x * gridDim.y) {}
    finished = 0;
}
