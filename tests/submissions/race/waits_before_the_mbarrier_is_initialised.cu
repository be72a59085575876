// Rows whose length is a multiple of 4 are copied in bulk. There, no barrier separates the initialisation of
// the mbarriers from the waits.
// expect: device=cpu message="uses what" finding=race quick=yes
// solve: tile=32x32
#include <cstdint>
constexpr int BK = 32, ST = 3;
__device__ __forceinline__ uint32_t su(const void* p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void init(uint64_t* b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(su(b)), "r"(n));
}
__device__ __forceinline__ void expect(uint64_t* b, int n) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(su(b)), "r"(n)
                 : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(su(b)) : "memory");
}
__device__ __forceinline__ void wait(uint64_t* b, int ph) {
    asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p "
                 "bra W;\n}" ::"r"(su(b)),
                 "r"(ph)
                 : "memory");
}
__device__ __forceinline__ void bulk(void* d, const void* s, int n, uint64_t* b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(su(d)),
        "l"(s), "r"(n), "r"(su(b))
        : "memory");
}
__global__ void __launch_bounds__(256)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ alignas(128) float a[ST][32][BK], b[ST][BK][32];
    __shared__ uint64_t full[ST], empty[ST];
    int t = threadIdx.y * 16 + threadIdx.x, m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;
    int mr = min(32, M - m0), nc = min(32, K - n0), tiles = (N + BK - 1) / BK;
    if (N % 4 || K % 4) {
        for (int i = t; i < 1024; i += 256) {
            int r = m0 + i / 32, c = n0 + i % 32;
            if (r < M && c < K) {
                float s = 0;
                for (int n = 0; n < N; n++) s += A[(size_t)r * N + n] * B[(size_t)n * K + c];
                C[(size_t)r * K + c] = s;
            }
        }
        return;
    }
    if (t == 0) {
        for (int i = 0; i < ST; i++) {
            init(&full[i], 1);
            init(&empty[i], 224);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (t < 32) {
        if (t == 0)
            for (int i = 0; i < tiles; i++) {
                int s = i % ST, kn = min(BK, N - i * BK);
                if (i >= ST) wait(&empty[s], (i / ST - 1) & 1);
                expect(&full[s], (mr * kn + kn * nc) * 4);
                for (int r = 0; r < mr; r++)
                    bulk(a[s][r], A + (size_t)(m0 + r) * N + i * BK, kn * 4, &full[s]);
                for (int k = 0; k < kn; k++)
                    bulk(b[s][k], B + (size_t)(i * BK + k) * K + n0, nc * 4, &full[s]);
            }
    } else {
        float acc[5] = {};
        int u = t - 32;
        for (int i = 0; i < tiles; i++) {
            int s = i % ST, kn = min(BK, N - i * BK);
            wait(&full[s], i / ST & 1);
            for (int j = 0, e = u; e < 1024; e += 224, j++)
                if (e / 32 < mr && e % 32 < nc)
                    for (int k = 0; k < kn; k++) acc[j] += a[s][e / 32][k] * b[s][k][e % 32];
            arrive(&empty[s]);
        }
        for (int j = 0, e = u; e < 1024; e += 224, j++)
            if (e / 32 < mr && e % 32 < nc) C[(size_t)(m0 + e / 32) * K + n0 + e % 32] = acc[j];
    }
}
