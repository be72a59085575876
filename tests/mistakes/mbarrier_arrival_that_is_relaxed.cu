// expect: race
// says: An arrival or a wait that is relaxed orders no accesses. Use the default
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    __shared__ alignas(8) unsigned long long barrier;
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (x + y == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 256;" ::"r"(at) : "memory");
    __syncthreads();
    float sum = 0.0f;
    for (int t = 0, parity = 0; t < N; t += 16, parity ^= 1) {
        a[y][x] = row < M && t + x < N ? A[row * N + t + x] : 0.0f;
        b[y][x] = t + y < N && col < K ? B[(t + y) * K + col] : 0.0f;
        asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
        int over = 0;
        while (!over)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                         : "=r"(over) : "r"(at), "r"(parity) : "memory");
        for (int i = 0; i < 16; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
