// solve: tile=128x128 shared_memory=49952
// Bulk copies: one thread copies whole rows of B, and an mbarrier counts their bytes.
//
// Idea: in 13 each of 256 threads issues copies of 16 bytes. On compute capability 9.0, one
// cp.async.bulk copies a whole row of the tile (512 bytes). So 16 instructions of ONE thread copy
// B's part of a stage. An mbarrier completes its phase when the expected number of bytes has
// arrived. A is still copied by cp.async, because a bulk copy cannot transpose.
//
// Inputs: as for 13. B is copied as in 13 on older GPUs, if a stage crosses an edge of B, or if
// rows are not aligned to 16 bytes.
//
//     thread 0:    expect bytes --> 16 bulk copies of B --> mbarrier of the slot
//     all threads: copies of A --> cp.async group
//     all threads: wait for the group and the mbarrier --> barrier --> multiply the slot
//
// Expected gain over 13: almost none, about 4 of 1150 instructions per thread and stage. The warp
// that issues the copies even falls behind the others. Multiply-adds are the limit on CUDA cores.
// But bulk copies are how Hopper's tensor cores are supplied with data (33).
// In the judge, on an H200: 0.765 x cuBLAS (95 %: 0.765 to 0.765), 10.636 ms, 0.95 x the speed
// of 13; 127 registers, 49952 B of shared memory, 2 blocks a multiprocessor.
// reports/h200/14_bulk_copies.json has the rest.

constexpr int BM = 128, BN = 128, BK = 16, STAGES = 3;
constexpr int WM = 32, WN = 64;
constexpr int TM = 8, TN = 8;
constexpr int PITCH = BM + 4;
constexpr int STAGE = BK * (PITCH + BN);  // floats: the transposed tile of A, then the tile of B

template <int BYTES>
__device__ void copy_async(float* to, const float* from, int valid_bytes) {
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from),
                 "n"(BYTES), "r"(valid_bytes)
                 : "memory");
}

// Arrives at `barrier`, whose phase completes when bulk copies have written `bytes` more.
__device__ void expect(unsigned barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
#endif
}

__device__ void copy_bulk(float* to, const float* from, int bytes, unsigned barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
#endif
}

__device__ void wait(unsigned barrier, int phase) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n"
                 ".reg .pred open;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\n"
                 "@!open bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(256, 2)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float stages[];

    int tid = threadIdx.y * 16 + threadIdx.x, warp = tid / 32, lane = tid % 32;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool aligned_b = K % 4 == 0 && (size_t)B % 16 == 0;

    // One mbarrier per stage, after the tiles. Bit s of `phases` is the phase of stage s.
    unsigned barriers = (unsigned)__cvta_generic_to_shared(stages + STAGES * STAGE);
    unsigned phases = 0;
    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + s * 8)
                         : "memory");
#if __CUDA_ARCH__ >= 900
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    }
    __syncthreads();

#if __CUDA_ARCH__ >= 900
    bool columns_inside = aligned_b && col0 + BN <= K;
#else
    bool columns_inside = false;
#endif
    auto is_bulk = [&](int n) { return columns_inside && n + BK <= N; };

    auto copy_stage = [&](int stage, int n) {
        float* tile_a = stages + stage * STAGE;
        float* tile_b = tile_a + BK * PITCH;
        int k = tid % 8, row = tid / 8;  // a warp copies 4 rows of 8 floats: whole sectors
#pragma unroll
        for (int i = 0; i < BM; i += 32)
#pragma unroll
            for (int j = 0; j < BK; j += 8) {
                bool inside = row0 + row + i < M && n + k + j < N;
                copy_async<4>(tile_a + (k + j) * PITCH + row + i,
                              inside ? A + (size_t)(row0 + row + i) * N + n + k + j : A,
                              inside ? 4 : 0);
            }
        if (is_bulk(n)) {
            if (tid == 0) {
                expect(barriers + stage * 8, BK * BN * 4);
                for (int i = 0; i < BK; ++i)
                    copy_bulk(tile_b + i * BN, B + (size_t)(n + i) * K + col0, BN * 4,
                              barriers + stage * 8);
            }
            return;
        }
#pragma unroll
        for (int i = tid * 4; i < BK * BN; i += 1024) {
            int b_k = i / BN, b_col = i % BN;
            int valid = n + b_k < N ? min(max(K - col0 - b_col, 0), 4) : 0;
            const float* from = valid ? B + (size_t)(n + b_k) * K + col0 + b_col : B;
            if (aligned_b) {
                copy_async<16>(tile_b + i, from, valid * 4);
            } else {
                for (int e = 0; e < 4; ++e)
                    copy_async<4>(tile_b + i + e, e < valid ? from + e : B, e < valid ? 4 : 0);
            }
        }
    };
    auto commit = [] { asm volatile("cp.async.commit_group;" ::: "memory"); };

    int my_row = warp / (BN / WN) * WM + lane / 8 * 4;
    int my_col = warp % (BN / WN) * WN + lane % 8 * 4;
    auto down = [](int i) { return i / 4 * (WM / 2) + i % 4; };
    auto right = [](int j) { return j / 4 * (WN / 2) + j % 4; };

    float a[2][TM], b[2][TN];
    auto load_fragments = [&](int stage, int k) {
        const float* tile_a = stages + stage * STAGE + k * PITCH + my_row;
        const float* tile_b = stages + stage * STAGE + BK * PITCH + k * BN + my_col;
        for (int i = 0; i < TM; i += 4) *(float4*)&a[k % 2][i] = *(const float4*)&tile_a[down(i)];
        for (int j = 0; j < TN; j += 4) *(float4*)&b[k % 2][j] = *(const float4*)&tile_b[right(j)];
    };

    for (int s = 0; s < STAGES - 1; ++s) {
        if (s * BK < N) copy_stage(s, s * BK);
        commit();
    }

    float sum[TM][TN] = {};
    int stage = 0, free_stage = STAGES - 1;
    for (int n = 0; n < N; n += BK) {
        // The oldest group of every thread is complete, and no thread reads the next free slot.
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        if (is_bulk(n)) {
            wait(barriers + stage * 8, phases >> stage & 1);
            phases ^= 1u << stage;
        }
        __syncthreads();

        int ahead = n + (STAGES - 1) * BK;
        if (ahead < N) copy_stage(free_stage, ahead);
        commit();

        load_fragments(stage, 0);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragments(stage, k + 1);
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += a[k % 2][i] * b[k % 2][j];
        }
        free_stage = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int row = row0 + my_row + down(i), col = col0 + my_col + right(j);
            if (row < M && col < K) C[(size_t)row * K + col] = sum[i][j];
        }
}
