// Copies rows of A and B by bulk copies that an mbarrier counts. N and K must be multiples of 4.
// solve: shared_memory=2048
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    extern __shared__ __align__(128) float rows[];
    __shared__ __align__(8) unsigned long long arrived;
    unsigned barrier = __cvta_generic_to_shared(&arrived), to = __cvta_generic_to_shared(rows);
    int id = threadIdx.y * 16 + threadIdx.x, row0 = blockIdx.y * 16, column0 = blockIdx.x * 16;
    int height = min(16, M - row0), width = min(16, K - column0), phase = 0;
    if (id == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    __syncthreads();
    float sum = 0.0f;
    for (int start = 0; start < N; start += 16, phase ^= 1) {
        int depth = min(16, N - start);
        if (id == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                         "r"(4 * (height * depth + depth * width)) : "memory");
            for (int r = 0; r < height; ++r)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                             "r"(to + 64 * r), "l"(A + (row0 + r) * N + start), "r"(4 * depth), "r"(barrier) : "memory");
            for (int r = 0; r < depth; ++r)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                             "r"(to + 1024 + 64 * r), "l"(B + (start + r) * K + column0), "r"(4 * width), "r"(barrier) : "memory");
        }
        asm volatile("{ .reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra wait; }" ::
                     "r"(barrier), "r"(phase) : "memory");
        if (threadIdx.y < height && threadIdx.x < width)
            for (int i = 0; i < depth; ++i) sum += rows[threadIdx.y * 16 + i] * rows[256 + i * 16 + threadIdx.x];
        __syncthreads();
    }
    if (threadIdx.y < height && threadIdx.x < width)
        C[(row0 + threadIdx.y) * K + column0 + threadIdx.x] = sum;
}
