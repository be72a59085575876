// Stores C by bulk copies from shared memory. A barrier follows the stores there, but no proxy fence.
// expect: message="no fence.proxy.async" finding=race device=cpu quick=small

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ alignas(128) float tile[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    if (row < M && column < K)
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    bool whole = K % 4 == 0 && blockIdx.x * 16 + 16 <= K && ((size_t)C & 15) == 0;
    if (!whole) {
        if (row < M && column < K) C[(size_t)row * K + column] = sum;
        return;
    }
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0 && row < M) {
        unsigned from = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.y][0]);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" ::"l"(
                         C + (size_t)row * K + column),
                     "r"(from)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
