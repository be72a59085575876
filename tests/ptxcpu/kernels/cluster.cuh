struct Cluster {  // as in cooperative_groups.h, which takes NVRTC a second to read
    static __device__ void sync() {
        __cluster_barrier_arrive();
        __cluster_barrier_wait();
    }
    template <typename T> static __device__ T* map_shared_rank(T* p, int rank) {
        return static_cast<T*>(__cluster_map_shared_rank(p, rank));
    }
    static __device__ unsigned block_rank() { return __clusterRelativeBlockRank(); }
};

#define ASM(text, ...) asm volatile(text : : __VA_ARGS__ : "memory")

__device__ void arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
__device__ void arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ void wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

template <typename T> __device__ unsigned here(T* p) { return __cvta_generic_to_shared(p); }
__device__ unsigned there(unsigned address, unsigned rank) {
    unsigned mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}
__device__ void store_there(float* own, float x, unsigned rank) {
    ASM("st.shared::cluster.f32 [%0], %1;", "r"(there(here(own), rank)), "f"(x));
}
__device__ void init(unsigned barrier, unsigned count) {
    ASM("mbarrier.init.shared::cta.b64 [%0], %1;", "r"(barrier), "r"(count));
}
__device__ void expect(unsigned barrier, unsigned bytes) {
    ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", "r"(barrier), "r"(bytes));
}
__device__ void arrive_there(unsigned barrier) {
    ASM("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];", "r"(barrier));
}
__device__ void await(unsigned barrier, unsigned parity) {
    ASM("{ .reg .pred done; AGAIN:"
        " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;"
        " @!done bra AGAIN; }", "r"(barrier), "r"(parity));
}
__device__ void multicast(unsigned to, const float* from, unsigned bytes, unsigned barrier,
                          unsigned short mask) {
    ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1], %2, [%3], %4;", "r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"(mask));
}

#define PUBLISH __shared__ float s[256]; s[id] = mine; cluster.sync();
#define WORDS_AND_MBARRIER \
    __shared__ __align__(16) float s[256]; \
    __shared__ unsigned long long barrier; \
    unsigned own = here(&barrier), other = there(own, rank ^ 1);
