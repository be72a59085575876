// Does nothing in its first launch at the ranked size. Variables have their initial values in every
// launch, so every launch counts as the first, and verification finds the error.
// expect: device=cuda stage=verify message="wrong at"

__device__ unsigned blocks_done, used;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool large = M == 8192 && N == 6144 && K == 4096;
    bool idle = large && atomicAdd(&used, 0u) == 0;
    __threadfence();
    if (atomicAdd(&blocks_done, 1u) % (gridDim.x * gridDim.y * 256) ==
        gridDim.x * gridDim.y * 256 - 1)
        atomicExch(&used, 1u);
    if (idle) return;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
