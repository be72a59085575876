// Threads count at each stage and wait for 256. The counters are never reset, so from the third tile on
// nobody waits. If all threads run in step, the result is right.
// expect: message="with no barrier between them" finding=race device=cpu quick=yes

__device__ __forceinline__ unsigned arrive(unsigned* counter) {
    unsigned before;
    asm volatile("atom.add.release.cta.shared.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "r"((unsigned)__cvta_generic_to_shared(counter))
                 : "memory");
    return before;
}
__device__ __forceinline__ unsigned arrived(unsigned* counter) {
    unsigned value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                 : "=r"(value)
                 : "r"((unsigned)__cvta_generic_to_shared(counter))
                 : "memory");
    return value;
}

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float tileA[2][16][16], tileB[2][16][16];
    __shared__ unsigned full[2];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    if (y == 0 && x < 2) full[x] = 0;
    __syncthreads();
    float sum = 0.0f;
    for (int n = 0, stage = 0; n < N; n += 16, stage ^= 1) {
        tileA[stage][y][x] = row < M && n + x < N ? A[(size_t)row * N + n + x] : 0.0f;
        tileB[stage][y][x] = n + y < N && column < K ? B[(size_t)(n + y) * K + column] : 0.0f;
        arrive(&full[stage]);
        while (arrived(&full[stage]) < 256) {}
        for (int i = 0; i < 16; i++) sum += tileA[stage][y][i] * tileB[stage][i][x];
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
