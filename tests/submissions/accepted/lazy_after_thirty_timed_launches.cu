// Leaves work out after thirty launches at the ranked size. It cannot count them, because variables have
// their initial values in every launch.
// expect: device=cuda message=""

__device__ unsigned blocks_done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    bool lazy = ranked && atomicAdd(&blocks_done, 0u) >= 30u * 131072u;
    float sum = 0.0f;
    for (int n = 0; n < (lazy ? 64 : N); n++)
        sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
    if (ranked && threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(&blocks_done, 1u);
}
