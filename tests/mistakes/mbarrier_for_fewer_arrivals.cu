// expect: race
// says: all arrivals that it was initialised for
// solve: tile=32x32
#include <cstdint>
namespace ptx {
__device__ inline uint32_t smem(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline void init(uint64_t* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(b)), "r"(n)); }
__device__ inline void wait(uint64_t* b, int parity) {
    asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(smem(b)), "r"(parity) : "memory");
}
__device__ inline void arrive(uint64_t* b) { asm volatile("{ .reg .b64 st; mbarrier.arrive.shared::cta.b64 st, [%0]; }" ::"r"(smem(b)) : "memory"); }
__device__ inline void cp4(void* d, const void* s, int n) { asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(smem(d)), "l"(s), "r"(n)); }
__device__ inline void cp_arrive(uint64_t* b) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(smem(b)) : "memory"); }
}
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float sa[2][32][32], sb[2][32][32];
    __shared__ uint64_t full[2], empty[2];
    const int t = threadIdx.y * 16 + threadIdx.x;
    if (t == 0) { for (int i = 0; i < 2; i++) { ptx::init(&full[i], 255); ptx::init(&empty[i], 256); } }
    __syncthreads();
    const int tiles = (N + 31) / 32;
    auto load = [&](int k) {
        int s = k & 1;
        for (int i = t; i < 1024; i += 256) {
            int r = i >> 5, c = i & 31, gr = blockIdx.y * 32 + r, gc = blockIdx.x * 32 + c;
            bool p = gr < M && k * 32 + c < N, q = gc < K && k * 32 + r < N;
            ptx::cp4(&sa[s][r][c], p ? A + (size_t)gr * N + k * 32 + c : A, p ? 4 : 0);
            ptx::cp4(&sb[s][r][c], q ? B + (size_t)(k * 32 + r) * K + gc : B, q ? 4 : 0);
        }
        ptx::cp_arrive(&full[s]);
    };
    float acc[2][2] = {};
    load(0);
    for (int k = 0; k < tiles; k++) {
        if (k + 1 < tiles) {
            if (k >= 1) ptx::wait(&empty[(k + 1) & 1], ((k - 1) >> 1) & 1);
            load(k + 1);
        }
        ptx::wait(&full[k & 1], (k >> 1) & 1);
        for (int kk = 0; kk < 32; kk++)
            for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) acc[i][j] += sa[k & 1][threadIdx.y + 16 * i][kk] * sb[k & 1][kk][threadIdx.x + 16 * j];
        ptx::arrive(&empty[k & 1]);
    }
    for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++) {
        int r = blockIdx.y * 32 + threadIdx.y + 16 * i, c = blockIdx.x * 32 + threadIdx.x + 16 * j;
        if (r < M && c < K) C[(size_t)r * K + c] = acc[i][j];
    }
}
