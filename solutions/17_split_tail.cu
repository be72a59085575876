// solve: tile=64x128 shared_memory=49664
// 16, with the tiles of the last wave split along N.
//
// Idea: the ranked size has 1024 tiles of 128x256. A multiprocessor computes one tile at a time, so
// 132 of them need 7.76 waves, which take the time of 8. Here the first 924 blocks (7 full waves)
// compute a tile each. The remaining 100 tiles are cut along N into 132 equal parts, so that all
// multiprocessors finish together. A part that does not cover its whole tile stores its sums in a
// buffer. The last part of a tile to arrive adds them up, in the order of N. So the result does not
// depend on timing, and no block waits for another. Problems with fewer tiles than multiprocessors
// are split in the same way. The launch line declares 4 blocks per tile, so that small problems
// have enough blocks; blocks without work exit at once.
//
// Inputs: FP32 sums, about as accurate as cuBLAS on all inputs (grade A). Tiles at the edges of C,
// and all tiles if rows of B or C are not aligned to 16 bytes, use a second loop. It copies B by 4
// bytes: 24 copies per stage and thread instead of 12, 2234 instructions instead of 2184. A small C
// has few blocks, which leaves multiprocessors idle: 2 blocks for 128x128. 21 is for such shapes.
//
//     tiles 0 to 923          tiles 924 to 1023, one after the other along N
//     | one block per tile |  | part 0 | part 1 | part 2 | ...            | part 131 |
//                             |  tile 924  |  tile 925  | ...            |  tile 1023 |
//
// Expected gain over 16: 8 / 7.76 = 3 %, less about 10 microseconds for the partial sums.
// In the judge, on an H200: 1.120 x cuBLAS (95 %: 1.120 to 1.121), 7.274 ms.
// reports/h200/17_split_tail.json has the rest.

constexpr int BM = 128, BN = 256, BK = 16;  // tile of a block; elements of a stage along N
constexpr int TM = 16, TN = 8;  // outputs of a thread: 4 groups of 4 rows, 2 groups of 4 columns
constexpr int PITCH = BM + 4;   // floats from one k to the next in the transposed tile of A
constexpr int A_BYTES = BK * PITCH * 4, STAGE_BYTES = A_BYTES + BK * BN * 4;

constexpr int WORKERS = 132;    // multiprocessors of an H100; other GPUs only lose time
constexpr int MIN_STEPS = 4;    // no part is shorter than this many stages
constexpr int RASTER_ROWS = 8;  // height of a band of tiles, which are numbered column by column

// A warp copies A with LANES_K lanes along N and the others along M. The copies of a stage are
// issued COPIES at a time, in every COPY_EVERY-th step of k from step COPY_FROM.
constexpr int LANES_K = 4, COPIES = 6, COPY_EVERY = 4, COPY_FROM = 1, EDGE_COPY_EVERY = 2;
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
__device__ __forceinline__ void keep(float& value) { asm volatile("" : "+f"(value)); }

__device__ __forceinline__ int thread() { return threadIdx.y * 16 + threadIdx.x; }

// Return this thread's first row and column in the tile: 2 x 4 warps of 64x64, 4 x 8 lanes each.
__device__ __forceinline__ int thread_row() { return thread() / 128 * 64 + thread() % 32 / 8 * 4; }
__device__ __forceinline__ int thread_col() { return thread() / 32 % 4 * 64 + thread() % 8 * 4; }

// Accumulates whole stages of a tile that is inside C. Rows of B must be aligned to 16 bytes.
__device__ __forceinline__ void multiply(const float* A, const float* B, int N, int K,
                                         const Work& work, int end, unsigned shared,
                                         float (&sum)[TM][TN]) {
    // The orders of loads and rows, and the times of copies, affect only the compiler's schedule. A
    // random search found these (CUDA 13.0). Static tables reduce NVRTC's time to a quarter.
    static constexpr int LOADS[6] = {1, 2, 0, 3, 4, 5};  // 0-3: rows of A, 4-5: columns of B
    static constexpr int ROW_GROUPS[4] = {2, 0, 1, 3};
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

    // Hidden from the compiler, which would otherwise clear the sums earlier and be 0.2 % slower.
    float zero = 0.0f;
    keep(zero);
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) sum[i][j] = zero;

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
    static constexpr int ROW_GROUPS[4] = {2, 0, 1, 3};
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
    keep(nothing);
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

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float stages[];
    unsigned shared = (unsigned)__cvta_generic_to_shared(stages);

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
