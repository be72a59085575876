// solve: tile=128x128
// What a cluster is worth to a tile: blocks one below the other need the same tile of B. Each copies
// its share of it, and gets the rest from its neighbours' shared memory, or every copy is sent to all
// of them at once. In a cluster of one block, each copies it all.
// Whole tiles only are computed so; any other shape slowly.
constexpr int CLUSTER = 1;
constexpr int MULTICAST = 0;
constexpr int BM = 128, BN = 128, BK = 16, T = 8, THREADS = 256;
constexpr int SHARE = BK / CLUSTER;  // rows of B that a block copies
constexpr int PAD = 4;

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ unsigned rank() {
    unsigned found;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(found));
    return found;
}

// All threads of the cluster.
__device__ __forceinline__ void meet() {
    if (CLUSTER == 1) {
        __syncthreads();
    } else {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// One row of a tile of B, to this block or to all of the cluster.
__device__ __forceinline__ void copy_row(unsigned to, const float* from, unsigned barrier) {
    if (CLUSTER > 1 && MULTICAST) {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1], %2, [%3], %4;" ::"r"(to),
            "l"(from), "n"(BN * 4), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1))
            : "memory");
    } else {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            " [%0], [%1], %2, [%3];" ::"r"(to),
            "l"(from), "n"(BN * 4), "r"(barrier)
            : "memory");
    }
}

// Four floats out of the shared memory of another block.
__device__ __forceinline__ float4 read_from(unsigned block, unsigned address) {
    unsigned there;
    float4 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(there));
    return v;
}

// Any shape.
__device__ void slowly(const float* A, const float* B, float* C, int M, int N, int K) {
    const int bottom = min(M, (int)(blockIdx.y + 1) * BM), right = min(K, (int)(blockIdx.x + 1) * BN);
    for (int i = blockIdx.y * BM + threadIdx.y; i < bottom; i += 16) {
        for (int j = blockIdx.x * BN + threadIdx.x; j < right; j += 16) {
            float sum = 0;
            for (int k = 0; k < N; ++k) sum += A[(size_t)i * N + k] * B[(size_t)k * K + j];
            C[(size_t)i * K + j] = sum;
        }
    }
}

extern "C" __global__ void __cluster_dims__(1, CLUSTER, 1) __launch_bounds__(THREADS)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ alignas(128) float a[2][BK][BM + PAD];
    __shared__ alignas(128) float b[2][BK][BN];
    __shared__ unsigned long long arrived[2];
    if (M % (BM * CLUSTER) || N % BK || K % BN) {
        slowly(A, B, C, M, N, K);
        return;
    }
    const int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    const int top = blockIdx.y * BM, left = blockIdx.x * BN;
    const unsigned me = rank();
    const int first = me * SHARE;

    if (thread == 0) {
        for (int s = 0; s < 2; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&arrived[s])));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    meet();

    auto copy_b = [&](int tile) {
        if (thread != 0) return;
        const int s = tile & 1;
        const unsigned barrier = shared_address(&arrived[s]);
        const int rows = MULTICAST ? BK : SHARE;  // that arrive here
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                     "r"(rows * BN * 4)
                     : "memory");
        for (int i = first; i < first + SHARE; ++i)
            copy_row(shared_address(&b[s][i][0]), B + (size_t)(tile * BK + i) * K + left, barrier);
    };
    // Each thread brings eight neighbours of a row of A and lays them down as a column.
    const int row = thread / 2, column = thread % 2 * 8;
    const float* from = A + (size_t)(top + row) * N + column;
    float4 next[2];
    auto load_a = [&](int tile) {
        for (int i = 0; i < 2; ++i) next[i] = ((const float4*)(from + tile * BK))[i];
    };
    auto store_a = [&](int s) {
        for (int i = 0; i < 2; ++i) {
            a[s][column + 4 * i + 0][row] = next[i].x;
            a[s][column + 4 * i + 1][row] = next[i].y;
            a[s][column + 4 * i + 2][row] = next[i].z;
            a[s][column + 4 * i + 3][row] = next[i].w;
        }
    };

    float sum[T][T] = {};
    const int tiles = N / BK;
    copy_b(0);
    load_a(0);
    store_a(0);
    meet();
    for (int tile = 0; tile < tiles; ++tile) {
        const int s = tile & 1;
        if (tile + 1 < tiles) {
            copy_b(tile + 1);
            load_a(tile + 1);
        }
        wait(shared_address(&arrived[s]), tile >> 1 & 1);
        if (CLUSTER > 1 && !MULTICAST) {
            meet();  // every block has its share
            constexpr int QUADS = (BK - SHARE) * BN / 4;
            for (int i = thread; i < QUADS; i += THREADS) {
                const int other = i / (SHARE * BN / 4);
                const unsigned block = other + (other >= me);
                float* to = &b[s][block * SHARE][0] + i % (SHARE * BN / 4) * 4;
                *(float4*)to = read_from(block, shared_address(to));
            }
            __syncthreads();
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float u[T], v[T];
            for (int i = 0; i < T; i += 4) {
                *(float4*)&u[i] = *(const float4*)&a[s][k][y * 4 + i * 16];
                *(float4*)&v[i] = *(const float4*)&b[s][k][x * 4 + i * 16];
            }
            for (int i = 0; i < T; ++i)
                for (int j = 0; j < T; ++j) sum[i][j] += u[i] * v[j];
        }
        if (tile + 1 < tiles) store_a(s ^ 1);
        meet();
    }
    for (int i = 0; i < T; ++i) {
        float* to = C + (size_t)(top + y * 4 + i % 4 + i / 4 * 64) * K + left + x * 4;
        *(float4*)to = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        *(float4*)(to + 64) = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
    }
}
