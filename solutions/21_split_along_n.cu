// solve: tile=8192x1 shared_memory=107520
// 17 for large C; small C is split along N twice, among slices of a block and among blocks.
//
// Idea: if C is small, parallel work exists only along N. C of 128x128 is a single tile of 17,
// which keeps one of 132 multiprocessors busy. So small products use another kernel.
//   * Tiles are 64x64 or 32x32, but each thread still has 8x8 sums, for the ratio of products to
//     loads. 4 or 16 slices of the block share a tile and add up their sums in shared memory.
//   * Tiles of 64x64 are also split along N among blocks. The blocks of a tile take parts from a
//     work counter and store the sums in a buffer. When all parts have arrived, each block adds up
//     its share of the tile, in the order of N. So the result is reproducible, and the addition of
//     2 MB is distributed. (In 17 the last block adds up everything.)
//
// Inputs: FP32 sums, about as accurate as cuBLAS on all inputs (grade A). 17 is faster for C of
// medium size: 1.142 at 1024x1024x1024, where this file has 0.962.
//
//     tile 64x64, along N:   | part 0 | part 1 | part 2 | ...   each taken by a block of the tile
//     stage of a part:       | 0 1 2 3 0 1 2 3 |                slices of groups of four along N
//     addition:              block i waits for all parts of its tile, then adds up share i
//
// A block waits only for parts that running blocks have taken, and computing a part never waits. So
// no scheduling order of the blocks can deadlock. Counters contain the number of the launch. Two
// launches must not overlap. The launch line declares tiles of one column, so there are about K
// blocks instead of M x K. At the ranked size 1056 of 4096 have work; the others exit, but each
// takes a multiprocessor for 0.2 microseconds.
//
// Expected gain: at 128x16384x128, 537 MFLOP take 8 microseconds at the FP32 peak. Starting,
// filling the stages and adding up take about 10 more. cuBLAS takes 25 in two kernels. At
// 256x256x256 latency dominates, so one kernel should beat the 11 microseconds of cuBLAS's two.
// In the judge, on an H200: 1.129 x cuBLAS (95 %: 1.129 to 1.130), 7.233 ms. At 128x16384x128 it
// has 1.078, at 256x256x256 it has 1.479. 255 registers, 107520 B of shared memory, 1 block a
// multiprocessor. reports/h200/21_split_along_n.json has the rest.

constexpr int BM = 128, BN = 256, BK = 16;  // tile of a block; elements of a stage along N
constexpr int TM = 16, TN = 8;  // outputs of a thread: 4 groups of 4 rows, 2 groups of 4 columns
constexpr int PITCH = BM + 4;   // floats from one k to the next in the transposed tile of A
constexpr int A_BYTES = BK * PITCH * 4, STAGE_BYTES = A_BYTES + BK * BN * 4;

constexpr int WORKERS = 132;    // multiprocessors of an H100; other GPUs only lose time
constexpr int MIN_STEPS = 4;    // no part is shorter than this many stages
constexpr int RASTER_ROWS = 8;  // height of a band of tiles, which are numbered column by column

// A warp copies A with LANES_K lanes along N and the others along M. The copies of a stage are
// issued COPIES at a time, in every COPY_EVERY-th step of k from step COPY_FROM.
constexpr int LANES_K = 4, COPIES = 6, COPY_EVERY = 4, COPY_FROM = 0, EDGE_COPY_EVERY = 2;
constexpr bool COPY_B_FIRST = false;

// Partial sums by part: [0] for its first tile, if the part begins inside that tile, and [1] for
// its last tile, if the part ends inside that one. Two launches must not overlap.
__device__ float partial_sums[WORKERS][2][TM * TN][256];
__device__ unsigned parts_done[WORKERS];

// A unit of work: the stages begin to end - 1 of one tile of C.
struct Work {
    int row0, col0;   // the tile's first row and column
    int begin, end;   // stages
    int steps;        // stages of a whole tile
    int split;        // number of the tile among the split tiles
    int part, parts;  // number of this part; number of parts
};

__device__ __forceinline__ void copy4(unsigned to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy4_or_zero(unsigned to, const float* from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
}

__device__ __forceinline__ void copy16(unsigned to, const float* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
}

__device__ __forceinline__ void load4(float* to, unsigned from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from));
}

// Hides how a value was computed, since the compiler would otherwise recompute it at every use.
__device__ __forceinline__ void keep(unsigned& value) { asm volatile("" : "+r"(value)); }

__device__ __forceinline__ int thread() { return threadIdx.y * 16 + threadIdx.x; }

// Return this thread's first row and column in the tile: 2 x 4 warps of 64x64, 4 x 8 lanes each.
__device__ __forceinline__ int thread_row() { return thread() / 128 * 64 + thread() % 32 / 8 * 4; }
__device__ __forceinline__ int thread_col() { return thread() / 32 % 4 * 64 + thread() % 8 * 4; }

// Accumulates whole stages of a tile that is inside C. Rows of B must be aligned to 16 bytes.
__device__ __forceinline__ void multiply(const float* A, const float* B, int N, int K,
                                         const Work& work, int end, unsigned shared,
                                         float (&sum)[TM][TN]) {
    // The orders of loads and rows, and the times of copies, affect only the compiler's schedule. A
    // random search found these (CUDA 13.0). Loads 0-3 are groups of rows of A, 4-5 of columns of
    // B. Static LOADS halve the compile time of NVRTC. Static ROW_GROUPS would change the schedule,
    // in 18 to one that is 8 % slower.
    static constexpr int LOADS[6] = {3, 0, 1, 5, 2, 4};
    constexpr int ROW_GROUPS[4] = {3, 1, 2, 0};
    constexpr int PASS_ROWS = 8 * 32 / LANES_K;  // rows of A that the block copies at a time
    constexpr int A_COLUMNS = BK / LANES_K, A_COPIES = BM / PASS_ROWS * A_COLUMNS;
    constexpr int B_THREADS = 256 / BK, B_COPIES = BN / 4 / B_THREADS;  // threads along a row of B

    int lane = thread() % 32, warp = thread() / 32;
    int a_k = lane % LANES_K, a_row = warp * (32 / LANES_K) + lane / LANES_K;
    int b_k = thread() / B_THREADS, b_col = thread() % B_THREADS * 4;
    const float* from_a = A + (size_t)(work.row0 + a_row) * N + work.begin * BK + a_k;
    const float* from_b = B + (size_t)(work.begin * BK + b_k) * K + work.col0 + b_col;
    unsigned to_a = shared + (a_k * PITCH + a_row) * 4;
    unsigned to_b = shared + A_BYTES + (b_k * BN + b_col) * 4;
    unsigned read_a = shared + thread_row() * 4, read_b = shared + A_BYTES + thread_col() * 4;
    unsigned a_pass = N * (PASS_ROWS * 4u), b_stage = K * (BK * 4u);  // bytes
    keep(to_a), keep(to_b), keep(read_a), keep(read_b), keep(a_pass), keep(b_stage);

    auto copy = [&](int c) {
        if (COPY_B_FIRST)
            c = c < B_COPIES ? A_COPIES + c : c < A_COPIES + B_COPIES ? c - B_COPIES : c;
        if (c < A_COPIES) {
            int pass = c / A_COLUMNS, k = c % A_COLUMNS * LANES_K;
            copy4(to_a + (k * PITCH + pass * PASS_ROWS) * 4,
                  (const float*)((const char*)from_a + (size_t)a_pass * pass) + k);
        } else if (c < A_COPIES + B_COPIES) {
            c -= A_COPIES;
            copy16(to_b + c * B_THREADS * 16, from_b + c * B_THREADS * 4);
        }
    };

    float a[2][TM], b[2][TN];  // fragments of the current k and of the next
    auto load_fragments = [&](int k, int buffer) {
#pragma unroll
        for (int n = 0; n < 6; ++n) {
            int group = LOADS[n];
            if (group < 4)
                load4(&a[buffer][group * 4], read_a + (k * PITCH + group * 16) * 4);
            else
                load4(&b[buffer][(group - 4) * 4], read_b + (k * BN + (group - 4) * 32) * 4);
        }
    };

    __syncthreads();  // other warps may still read the stages of the previous tile
#pragma unroll
    for (int c = 0; c < A_COPIES + B_COPIES; ++c) copy(c);
    wait_for_copies();
    load_fragments(0, 0);
    int other = STAGE_BYTES;  // offset from the current stage to the other one
    to_a += other, to_b += other;

#pragma unroll 1
    for (int step = work.begin; step < end;) {
        // The last step copies its own stage again, so that all steps have the same code.
        if (++step < end) from_a += BK, from_b = (const float*)((const char*)from_b + b_stage);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {
                wait_for_copies();
                read_a += other, read_b += other, other = -other, to_a += other, to_b += other;
            }
            load_fragments((k + 1) % BK, (k + 1) % 2);
            if (k >= COPY_FROM && (k - COPY_FROM) % COPY_EVERY == 0)
#pragma unroll
                for (int c = 0; c < COPIES; ++c) copy((k - COPY_FROM) / COPY_EVERY * COPIES + c);
#pragma unroll
            for (int n = 0; n < TM; ++n)
#pragma unroll
                for (int m = 0; m < TN; ++m) {
                    int i = ROW_GROUPS[n / 4] * 4 + n % 4,
                        j = n % 2 ? TN - 1 - m : m;  // serpentine
                    sum[i][j] += a[k % 2][i] * b[k % 2][j];
                }
        }
    }
}

// Accumulates the last elements along N, which do not fill a stage.
__device__ __forceinline__ void multiply_rest(const float* A, const float* B, int N, int K,
                                              const Work& work, float (&sum)[TM][TN]) {
    const float* from_a = A + (size_t)(work.row0 + thread_row()) * N;
    const float* from_b = B + work.col0 + thread_col();
#pragma unroll 1
    for (int k = N / BK * BK; k < N; ++k) {
        float a[TM], b[TN];
#pragma unroll
        for (int i = 0; i < TM; ++i) a[i] = from_a[(size_t)(i / 4 * 16 + i % 4) * N + k];
#pragma unroll
        for (int j = 0; j < TN; ++j) b[j] = from_b[(size_t)k * K + j / 4 * 32 + j % 4];
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
    }
}

// Accumulates any tile if N has a whole stage. B is copied by 4 bytes, one column per thread.
// Copies of rows and columns outside the matrices read the last ones inside; their sums are not
// stored. If N is not a multiple of BK, the first stage starts at a negative k, where it has zeros.
__device__ __forceinline__ void multiply_edge(const float* A, const float* B, int M, int N, int K,
                                              const Work& work, unsigned shared,
                                              float (&sum)[TM][TN]) {
    static constexpr int LOADS[6] = {1, 2, 0, 3, 4, 5};
    constexpr int ROW_GROUPS[4] = {2, 0, 1, 3};
    constexpr int PASS_ROWS = 8 * 32 / LANES_K;
    constexpr int A_COLUMNS = BK / LANES_K, A_COPIES = BM / PASS_ROWS * A_COLUMNS;
    constexpr int B_THREADS = 256, B_COPIES = BK * BN / 256;
    static_assert(BM == 2 * PASS_ROWS && BN == B_THREADS);

    int lane = thread() % 32, warp = thread() / 32;
    int a_k = lane % LANES_K, a_row = warp * (32 / LANES_K) + lane / LANES_K;
    int b_k = thread() / B_THREADS, b_col = thread() % B_THREADS;
    int row = min(work.row0 + a_row, M - 1), second_row = min(work.row0 + a_row + PASS_ROWS, M - 1);
    int first_k = work.begin * BK - (BK - 1 - (N - 1) % BK);
    const float* from_a = A + (long long)row * N + first_k + a_k;
    const float* from_b = B + (long long)(first_k + b_k) * K + min(work.col0 + b_col, K - 1);
    unsigned to_a = shared + (a_k * PITCH + a_row) * 4;
    unsigned to_b = shared + A_BYTES + (b_k * BN + b_col) * 4;
    unsigned read_a = shared + thread_row() * 4, read_b = shared + A_BYTES + thread_col() * 4;
    unsigned a_pass = (second_row - row) * N * 4u, b_stage = K * (BK * 4u),
             b_row = K * 4u;  // bytes
    keep(to_a), keep(to_b), keep(read_a), keep(read_b), keep(a_pass), keep(b_stage);

    auto copy = [&](int c, bool first) {
        if (c < A_COPIES) {
            int pass = c / A_COLUMNS, k = c % A_COLUMNS * LANES_K;
            const float* from = (const float*)((const char*)from_a + (size_t)a_pass * pass) + k;
            unsigned to = to_a + (k * PITCH + pass * PASS_ROWS) * 4;
            if (first)
                copy4_or_zero(to, from, first_k + a_k + k >= 0);
            else
                copy4(to, from);
        } else if (c < A_COPIES + B_COPIES) {
            c -= A_COPIES;
            if (first)
                copy4_or_zero(to_b + c * BN * 4, from_b, first_k + c >= 0);
            else
                copy4(to_b + c * BN * 4, from_b);
            from_b = (const float*)((const char*)from_b + b_row);
        }
    };

    float a[2][TM], b[2][TN];
    auto load_fragments = [&](int k, int buffer) {
#pragma unroll
        for (int n = 0; n < 6; ++n) {
            int group = LOADS[n];
            if (group < 4)
                load4(&a[buffer][group * 4], read_a + (k * PITCH + group * 16) * 4);
            else
                load4(&b[buffer][(group - 4) * 4], read_b + (k * BN + (group - 4) * 32) * 4);
        }
    };

    __syncthreads();
#pragma unroll
    for (int c = 0; c < A_COPIES + B_COPIES; ++c) copy(c, true);
    wait_for_copies();
    load_fragments(0, 0);
    int other = STAGE_BYTES;
    to_a += other, to_b += other;

#pragma unroll 1
    for (int step = work.begin; step < work.end;) {
        // The copies have advanced from_b to the next stage. The last stage is copied again.
        ++step;
        if (step < work.steps)
            from_a += BK;
        else
            from_b = (const float*)((const char*)from_b - b_stage);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {
                wait_for_copies();
                read_a += other, read_b += other, other = -other, to_a += other, to_b += other;
            }
            load_fragments((k + 1) % BK, (k + 1) % 2);
            if (k >= COPY_FROM && (k - COPY_FROM) % EDGE_COPY_EVERY == 0)
#pragma unroll
                for (int c = 0; c < COPIES; ++c)
                    copy((k - COPY_FROM) / EDGE_COPY_EVERY * COPIES + c, false);
#pragma unroll
            for (int n = 0; n < TM; ++n)
#pragma unroll
                for (int m = 0; m < TN; ++m) {
                    int i = ROW_GROUPS[n / 4] * 4 + n % 4, j = n % 2 ? TN - 1 - m : m;
                    sum[i][j] += a[k % 2][i] * b[k % 2][j];
                }
        }
    }
}

// Computes any tile if N is less than a stage.
__device__ __forceinline__ void multiply_short(const float* A, const float* B, int M, int N, int K,
                                               const Work& work, float (&sum)[TM][TN]) {
    int row = work.row0 + thread_row(), col = work.col0 + thread_col();
#pragma unroll 1
    for (int k = 0; k < N; ++k) {
        float a[TM], b[TN];
#pragma unroll
        for (int i = 0; i < TM; ++i) a[i] = A[(size_t)min(row + i / 4 * 16 + i % 4, M - 1) * N + k];
#pragma unroll
        for (int j = 0; j < TN; ++j) b[j] = B[(size_t)k * K + min(col + j / 4 * 32 + j % 4, K - 1)];
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
    }
}

// Stores this part's sums in the buffer. Returns true for the last part of a tile to arrive; its
// `sum` then has the total. Parts are added in the order of N, so the result is reproducible.
__device__ __forceinline__ bool combine(const Work& work, int split_tiles, float (&sum)[TM][TN]) {
    __shared__ bool is_last;
    auto part_of = [&](int stage) {
        return (int)(((stage + 1LL) * work.parts - 1) / (split_tiles * work.steps));
    };
    int first = part_of(work.split * work.steps), last = part_of((work.split + 1) * work.steps - 1);

    float(*mine)[256] = partial_sums[work.part][work.begin == 0];
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) mine[i][thread()] = sum[i / TN][i % TN];
    __threadfence();  // the sums are visible before the count
    __syncthreads();
    if (thread() == 0) {
        is_last = atomicAdd(&parts_done[work.split], 1u) == last - first;
        if (is_last) parts_done[work.split] = 0;  // for the next launch
    }
    __syncthreads();
    if (!is_last) return false;

    __threadfence();  // the sums of other parts are read after the count
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) sum[i / TN][i % TN] = 0.0f;
#pragma unroll 1
    for (int part = first; part <= last; ++part)
#pragma unroll
        for (int i = 0; i < TM * TN; ++i)
            sum[i / TN][i % TN] += __ldcg(&partial_sums[part][part == first][i][thread()]);
    return true;
}

// Computes a unit of work, and stores the tile if this part completes it.
template <bool EDGE>
__device__ __forceinline__ void compute(const float* A, const float* B, float* C, int M, int N,
                                        int K, const Work& work, int split_tiles, unsigned shared) {
    float sum[TM][TN] = {};
    if (EDGE) {
        if (N < BK)
            multiply_short(A, B, M, N, K, work, sum);
        else
            multiply_edge(A, B, M, N, K, work, shared, sum);
    } else {
        int end = min(work.end, N / BK);
        if (work.begin < end) multiply(A, B, N, K, work, end, shared, sum);
        if (end < work.end) multiply_rest(A, B, N, K, work, sum);
    }
    if (work.end - work.begin < work.steps && !combine(work, split_tiles, sum)) return;

    // Adding -0.0 changes no number, but creates a new value for the store. The new values can be
    // in consecutive registers, while the sums are in the banks that suit the products (16).
    float nothing = -0.0f;
    asm volatile("" : "+f"(nothing));
    int row = work.row0 + thread_row(), col = work.col0 + thread_col();
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            int down = row + i / 4 * 16 + i % 4, right = col + j / 4 * 32;
            float* to = C + (size_t)down * K + right;
            if (!EDGE) {
                *(float4*)to = make_float4(sum[i][j] + nothing, sum[i][j + 1] + nothing,
                                           sum[i][j + 2] + nothing, sum[i][j + 3] + nothing);
            } else {
                for (int e = 0; e < 4; ++e)
                    if (down < M && right + e < K) to[e] = sum[i][j + e];
            }
        }
}

// ---- small products: square tiles, each shared by slices of a block and by several blocks ------

__device__ __forceinline__ void copy16_or_zero(unsigned to, const float* from, bool exists) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(exists ? 16 : 0)
                 : "memory");
}

// Counters of a tile: the epoch of the launch in the high 40 bits, a count in the low 24.
__device__ unsigned long long tickets[WORKERS], arrivals[WORKERS];
constexpr int COUNT_BITS = 24;
constexpr int SMALL = 1 << 19;  // least number of elements of C for the large tiles

// Returns a number that grew with every launch on an H100 and an H200, so counters of an aborted
// launch count as old. PTX does not promise that %gridid grows.
__device__ __forceinline__ unsigned long long launch_epoch() {
    unsigned long long id;
    asm("mov.u64 %0, %%gridid;" : "=l"(id));
    return (id + 1) << COUNT_BITS;
}

// Returns a counter's value in this launch, and increments the counter.
__device__ __forceinline__ int take(unsigned long long* counter, unsigned long long epoch) {
    atomicMax(counter, epoch);
    return (int)(atomicAdd(counter, 1ull) - epoch);
}

__device__ __forceinline__ unsigned long long load_acquire(const unsigned long long* p) {
    unsigned long long value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

__device__ __forceinline__ float4 add(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

__device__ __forceinline__ int block_index() { return blockIdx.y * gridDim.x + blockIdx.x; }

// Computes square tiles with 8x8 sums per thread, so that SLICES groups of threads share a tile.
// Each group (slice) multiplies its own elements of a stage along N, in groups of four.
template <int TILE>
struct Square {
    static constexpr int EDGE = TILE / 8, GROUP = EDGE * EDGE, SLICES = 256 / GROUP;
    static constexpr int BK = 8 * SLICES;                       // two groups of four per slice
    static constexpr int A_PITCH = BK + 8, B_PITCH = TILE + 4;  // no bank conflicts
    static constexpr int A_FLOATS = TILE * A_PITCH, STAGE_FLOATS = A_FLOATS + BK * B_PITCH;
    static constexpr int STAGES = 107520 / 4 / STAGE_FLOATS;
    static constexpr int FOURS = TILE * TILE / 4;  // float4s of C in a tile, in the order of `out`

    const float *A, *B;
    float* C;
    int M, N, K;
    bool wide;  // rows of A, B and C are aligned to 16 bytes
    int row0, col0;
    float* stages;

    // Copies four floats. Only the first `count` exist; the others become zero.
    __device__ __forceinline__ void copy(unsigned to, const float* from, int count) const {
        if (wide) {
            copy16_or_zero(to, from, count > 0);
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e) copy4_or_zero(to + e * 4, from + e, e < count);
        }
    }

    // Stores float4 number `four` of the tile.
    __device__ __forceinline__ void store(int four, float4 v) const {
        int row = row0 + four / GROUP / 2 * EDGE + four % GROUP / EDGE;
        int col = col0 + four / GROUP % 2 * (TILE / 2) + four % EDGE * 4;
        if (row >= M || col >= K) return;
        float* to = C + (size_t)row * K + col;
        if (wide) {
            *(float4*)to = v;
        } else {
            to[0] = v.x;
            if (col + 1 < K) to[1] = v.y;
            if (col + 2 < K) to[2] = v.z;
            if (col + 3 < K) to[3] = v.w;
        }
    }

    // Computes this slice's sums over elements begin to end - 1 along N.
    __device__ __forceinline__ void multiply(int begin, int end, float (&sum)[8][8]) const {
        constexpr int A_LANES = BK / 4, B_LANES = TILE / 4;  // threads along a row
        int a_row = row0 + thread() / A_LANES, a_k = begin + thread() % A_LANES * 4;
        int b_k = begin + thread() / B_LANES, b_col = col0 + thread() % B_LANES * 4;
        const float* from_a = A + (size_t)a_row * N + a_k;
        const float* from_b = B + (size_t)b_k * K + b_col;
        unsigned shared = (unsigned)__cvta_generic_to_shared(stages);
        unsigned to_a = shared + (thread() / A_LANES * A_PITCH + thread() % A_LANES * 4) * 4;
        unsigned to_b =
            shared + (A_FLOATS + thread() / B_LANES * B_PITCH + thread() % B_LANES * 4) * 4;

        auto copy_stage = [&](unsigned stage) {
#pragma unroll
            for (int row = 0; row < TILE; row += 256 / A_LANES)
                copy(to_a + stage + row * A_PITCH * 4, from_a + (size_t)row * N,
                     a_row + row < M ? end - a_k : 0);
#pragma unroll
            for (int k = 0; k < BK; k += 256 / B_LANES)
                copy(to_b + stage + k * B_PITCH * 4, from_b + (size_t)k * K,
                     b_k + k < end ? K - b_col : 0);
            a_k += BK, from_a += BK, b_k += BK, from_b += (size_t)BK * K;
        };

        int slice = thread() / GROUP, member = thread() % GROUP;
        unsigned read_a = shared + (member / EDGE * A_PITCH + slice * 4) * 4;
        unsigned read_b = shared + (A_FLOATS + slice * 4 * B_PITCH + member % EDGE * 4) * 4;
        float a[2][8][4], b[2][8];  // current and next group of four along N; current and next k
        auto load_a = [&](unsigned stage, int four) {
#pragma unroll
            for (int i = 0; i < 8; ++i)
                load4(a[four][i], read_a + stage + (i * EDGE * A_PITCH + four * SLICES * 4) * 4);
        };
        auto load_b = [&](unsigned stage, int four, int k) {
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load4(&b[k % 2][j * 4],
                      read_b + stage + ((four * SLICES * 4 + k) * B_PITCH + j * (TILE / 2)) * 4);
        };

        constexpr int ROWS[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        constexpr unsigned STAGE = STAGE_FLOATS * 4, RING = STAGES * STAGE;
        int steps = (end - begin + BK - 1) / BK;
        unsigned now = 0, free = 0;
#pragma unroll
        for (int i = 0; i < 64; ++i) sum[i / 8][i % 8] = 0.0f;
        __syncthreads();  // other warps may still read shared memory for the previous tile
#pragma unroll 1
        for (int step = 1 - STAGES; step < steps; ++step) {
            if (step + STAGES - 1 < steps) copy_stage(free);
            asm volatile("cp.async.commit_group;" ::: "memory");
            free = free + STAGE == RING ? 0 : free + STAGE;
            if (step < 0) {
                if (step < -1) continue;  // all slots are filled before the first stage is used
                asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
                __syncthreads();
                load_a(0, 0);
                load_b(0, 0, 0);
                continue;
            }
            unsigned next = now + STAGE == RING ? 0 : now + STAGE;
            if (step + 1 == steps) next = now;  // no stage follows; these loads are not used
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                if (k == 7) {  // after the last load from this slot, which the next step refills
                    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
                    __syncthreads();
                }
                if (k == 0) load_a(now, 1);
                if (k == 7) load_a(next, 0);
                if (k < 7)
                    load_b(now, (k + 1) / 4, (k + 1) % 4);
                else
                    load_b(next, 0, 0);
#pragma unroll
                for (int n = 0; n < 8; ++n)
#pragma unroll
                    for (int m = 0; m < 8; ++m) {
                        int i = ROWS[n], j = n % 2 ? 7 - m : m;  // serpentine
                        sum[i][j] += a[k / 4][i][k % 4] * b[k % 2][j];
                    }
            }
            now = next;
        }
    }

    // Adds up the slices, in their order. This thread gets the float4s of the tile with numbers
    // thread(), thread() + 256, ...
    __device__ __forceinline__ void add_slices(const float (&sum)[8][8],
                                               float4 (&out)[FOURS / 256]) const {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        float4* sums = (float4*)stages;
        float nothing = -0.0f;  // as in `compute`
        asm volatile("" : "+f"(nothing));
#pragma unroll
        for (int four = 0; four < 16; ++four) {
            const float* v = &sum[four / 2][four % 2 * 4];
            sums[four * 256 + thread()] =
                make_float4(v[0] + nothing, v[1] + nothing, v[2] + nothing, v[3] + nothing);
        }
        __syncthreads();
#pragma unroll
        for (int n = 0; n < FOURS / 256; ++n) {
            int four = n * 256 + thread();
            const float4* from = sums + four / GROUP * 256 + four % GROUP;
            out[n] = from[0];
#pragma unroll
            for (int s = 1; s < SLICES; ++s) out[n] = add(out[n], from[s * GROUP]);
        }
    }

    // Adds up the partial sums of all parts, for this block's share of the tile.
    __device__ __forceinline__ void add_up(const float4 (*partial)[FOURS], int share,
                                           int parts) const {
        // If there are many parts, shares are small, and 4 threads divide the parts among them.
        int lanes = parts >= 16 ? 64 : 256, group = thread() / lanes;
        float4* sums = (float4*)stages;
        int last = (share + 1) * FOURS / parts;
#pragma unroll 1
        for (int base = share * FOURS / parts; base < last; base += lanes) {
            int four = base + thread() % lanes;
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (four < last)
#pragma unroll 8
                for (int part = group; part < parts; part += 256 / lanes)
                    sum = add(sum, __ldcg(&partial[part][four]));
            if (lanes == 64) {
                __syncthreads();
                sums[thread()] = sum;
                __syncthreads();
                for (int g = 1; g < 4; ++g) sum = add(sum, sums[thread() % 64 + g * 64]);
            }
            if (four < last && group == 0) store(four, sum);
        }
    }

    __device__ __forceinline__ void set_tile(int tile) {
        int tile_cols = (K + TILE - 1) / TILE, tile_row = (unsigned)tile / tile_cols;
        row0 = tile_row * TILE, col0 = (tile - tile_row * tile_cols) * TILE;
    }

    // Computes the product with whole tiles for each block.
    __device__ __forceinline__ void whole_tiles(int tiles) {
        float4 out[FOURS / 256];
        for (int tile = block_index(); tile < tiles; tile += gridDim.x * gridDim.y) {
            set_tile(tile);
            float sum[8][8];
            multiply(0, N, sum);
            add_slices(sum, out);
#pragma unroll
            for (int n = 0; n < FOURS / 256; ++n) store(n * 256 + thread(), out[n]);
        }
    }

    // Computes the product with several blocks per tile. They take parts from a work counter until
    // none is left. Then each adds up a share of the tile.
    __device__ __forceinline__ void split_tiles(int tiles, int parts, int depth) {
        int block = block_index();
        if (block >= tiles * parts) return;
        __shared__ int ticket;
        int tile = (unsigned)block % tiles;
        set_tile(tile);
        float4 out[FOURS / 256];
        float4(*partial)[FOURS] = (float4(*)[FOURS])partial_sums + tile * parts;
        unsigned long long epoch = launch_epoch();
        if (thread() == 0) ticket = take(&tickets[tile], epoch);
        __syncthreads();
        while (ticket < parts) {
            int part = ticket, begin = part * depth;
            float sum[8][8];
            multiply(begin, min(N, begin + depth), sum);
            int next = thread() == 0 ? take(&tickets[tile], epoch) : 0;
            add_slices(sum, out);
#pragma unroll
            for (int n = 0; n < FOURS / 256; ++n)
                __stcg(&partial[part][n * 256 + thread()], out[n]);
            __threadfence();  // the sums are visible before the count
            __syncthreads();
            if (thread() == 0) {
                take(&arrivals[tile], epoch);
                ticket = next;
            }
            __syncthreads();
        }

        // Running blocks have taken all parts, so this wait ends. The last block resets the
        // counters, since launches of a replayed graph have the same epoch.
        if (thread() == 0) {
            if (ticket == 2 * parts - 1) atomicExch(&tickets[tile], 0ull);
            while (load_acquire(&arrivals[tile]) < epoch + parts) {}
            if (take(&arrivals[tile], epoch) == 2 * parts - 1) atomicExch(&arrivals[tile], 0ull);
        }
        __syncthreads();
        add_up(partial, ticket - parts, parts);
    }
};

__device__ __forceinline__ void whole_squares(const float* A, const float* B, float* C, int M,
                                              int N, int K, bool wide, int tiles, float* stages) {
    Square<32>{A, B, C, M, N, K, wide, 0, 0, stages}.whole_tiles(tiles);
}

__device__ __forceinline__ void split_squares(const float* A, const float* B, float* C, int M,
                                              int N, int K, bool wide, int tiles, int parts,
                                              int depth, float* stages) {
    Square<64>{A, B, C, M, N, K, wide, 0, 0, stages}.split_tiles(tiles, parts, depth);
}

// Computes the product if it is small or has too few blocks for large tiles. Returns true if so.
__device__ __forceinline__ bool small_product(const float* A, const float* B, float* C, int M,
                                              int N, int K, float* stages) {
    long long blocks = (long long)gridDim.x * gridDim.y;
    bool enough = blocks >= (long long)((M + BM - 1) / BM) * ((K + BN - 1) / BN);
    if (enough && (long long)M * K >= SMALL) return false;

    bool wide = N % 4 == 0 && K % 4 == 0 && ((size_t)A | (size_t)B | (size_t)C) % 16 == 0;
    int tiles = ((M + 31) / 32) * ((K + 31) / 32);
    if (!enough || (tiles + WORKERS - 1) / WORKERS * (long long)N <= 1024) {
        whole_squares(A, B, C, M, N, K, wide, tiles, stages);
        return true;
    }
    tiles = ((M + 63) / 64) * ((K + 63) / 64);
    unsigned most = (unsigned)min(blocks, (long long)WORKERS) / tiles;
    if (most < 2) return false;
    int depth = max(((N + most - 1) / most + 3) / 4 * 4, 32u);  // elements of a part along N
    int parts = (unsigned)(N + depth - 1) / depth;
    split_squares(A, B, C, M, N, K, wide, tiles, parts, depth, stages);
    return true;
}

// Computes larger products as in 17. Not inlined, to keep the code of small products compact.
__device__ __noinline__ void large_product(const float* A, const float* B, float* C, int M, int N,
                                           int K, unsigned shared) {
    int tile_rows = (M + BM - 1) / BM, tile_cols = (K + BN - 1) / BN, steps = (N + BK - 1) / BK;
    int tiles = tile_rows * tile_cols, whole_tiles = tiles / WORKERS * WORKERS;
    int split_tiles = tiles - whole_tiles, split_steps = split_tiles * steps;
    int block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    int parts = min(min(WORKERS, blocks - whole_tiles), max(split_tiles, split_steps / MIN_STEPS));
    int part = block - whole_tiles;  // negative: this block computes a whole tile
    if (part >= parts) return;

    auto cut = [&](int part) { return (int)((long long)part * split_steps / parts); };
    int begin = part < 0 ? 0 : cut(part), end = part < 0 ? steps : cut(part + 1);

    while (begin < end) {
        int split = begin / steps, tile = part < 0 ? block : whole_tiles + split;
        int first = begin - split * steps, last = min(steps, first + end - begin);
        begin += last - first;

        int band = tile / (RASTER_ROWS * tile_cols), within = tile % (RASTER_ROWS * tile_cols);
        int height = min(tile_rows - band * RASTER_ROWS, RASTER_ROWS);
        int row0 = (band * RASTER_ROWS + within % height) * BM, col0 = within / height * BN;

        Work work = {row0, col0, first, last, steps, split, part, parts};
        bool plain = row0 + BM <= M && col0 + BN <= K && K % 4 == 0 && (size_t)B % 16 == 0 &&
                     (size_t)C % 16 == 0;
        if (plain)
            compute<false>(A, B, C, M, N, K, work, split_tiles, shared);
        else
            compute<true>(A, B, C, M, N, K, work, split_tiles, shared);
    }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float stages[];
    unsigned shared = (unsigned)__cvta_generic_to_shared(stages);

    if (!small_product(A, B, C, M, N, K, stages)) large_product(A, B, C, M, N, K, shared);
}
