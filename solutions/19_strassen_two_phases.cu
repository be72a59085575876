// solve: tile=64x128 shared_memory=49664
// Strassen's algorithm in two phases of one launch: seven products of quarters instead of eight.
//
// Idea: A, B and C are cut into 2x2 quarters. Seven products of sums of quarters replace the eight
// products of quarters (V. Strassen, Gaussian elimination is not optimal, 1969; here in the form of
// S. Winograd). That saves 12.5 % of the multiplications. Adding the operands while loading them
// would cost more, since the loop has no free issue slot. So phase one forms the sums beforehand.
// Phase two runs the loop of 17 on quarters and sums. The products of a tile are added to C one
// after the other, so the result does not depend on timing. The last tiles are split along N.
//
// Inputs: the error on uniform inputs is 3.8e-6, where cuBLAS has 1.8e-6 (grade A or B). Rows i and
// i + M/2 of A are added, and columns j and j + K/2 of B. The larger one determines the error. So
// lower rows and right columns are scaled by powers of two, which is exact, to similar norms. Sums
// also lose accuracy if a row is dominated by a few elements or by one half, or if large products
// cancel. Moments of all rows and columns detect this. The launch then computes the eight ordinary
// products at 1.07 x cuBLAS, for example with outliers, or if A is positive and B is not. Other
// patterns that the quarters share are not detected: repeated lines have 1.5e-5, cuBLAS 6.2e-6.
//
//     helpers (12 blocks):  inspect rows and columns --> all inspected --> form 4 + 4 sums --> pool
//     other blocks:         A11 B11, A12 B21 (no sums) --> wait until all sums are formed
//     all blocks:           take tiles of products from one work counter, in the order of SEVEN
//     tile of product p:    multiply --> wait for product p - 1 of the tile --> add to C
//
// A block waits only for work with a lower ticket, which running blocks have taken. So no
// scheduling order of the blocks can deadlock. Two launches must not overlap.
//
// The loop needs the schedule of 17. If the unit of work is not at a fixed address in shared
// memory, ptxas issues the copies in bursts, which costs 10 %.
//
// Expected gain over 17: 8/7, less 4 % for phase one and the additions, which is 1.25 x cuBLAS.
// 254 registers, 49936 B of shared memory, a pool of 512 MiB.
// In the judge, on an H200: 1.221 x cuBLAS (95 %: 1.220 to 1.221), 6.687 ms.
// reports/h200/19_strassen_two_phases.json has the rest.

constexpr int BM = 128, BN = 256, BK = 16;  // tile of a block; elements of a stage along N
constexpr int TM = 16, TN = 8;  // outputs of a thread: 4 groups of 4 rows, 2 groups of 4 columns
constexpr int PITCH = BM + 4;   // floats from one k to the next in the transposed tile of A
constexpr int A_BYTES = BK * PITCH * 4, STAGE_BYTES = A_BYTES + BK * BN * 4;

constexpr int RASTER_ROWS = 8;  // height of a band of tiles, which are numbered column by column

// A warp copies A with LANES_K lanes along N and the others along M. The copies of a stage are
// issued COPIES at a time, in every COPY_EVERY-th step of k from step COPY_FROM.
constexpr int LANES_K = 4, COPIES = 6, COPY_EVERY = 4, COPY_FROM = 0;
constexpr bool COPY_B_FIRST = false;

// The last tiles are split along N, so that all multiprocessors finish together (17).
constexpr int MIN_STEPS = 4;      // least number of stages of a part
constexpr int PARTS_OF_TILE = 8;  // most parts of a tile
constexpr int PARTS = 1056;       // most parts of all tiles

// Problem sizes for which seven products are faster and accurate, and for which buffers suffice.
constexpr int MIN_DEPTH = 2048, MAX_DEPTH = 12288, MIN_TILES = 96, MAX_TILES = 4096;
constexpr int MAX_LINES = 32768;
constexpr long long POOL_FLOATS = 128ll << 20;
constexpr int HELPERS = 12;  // blocks that prepare sums of quarters while the others multiply

__device__ __align__(16) float pool[POOL_FLOATS];  // sums of quarters, 4 of A, then 4 of B
__device__ float partial_sums[PARTS][TM * TN][256];
__device__ unsigned parts_done[PARTS];         // by split tile
__device__ unsigned products_done[MAX_TILES];  // by tile of a quarter of C
// Factors of rows of A and of columns of B, which are applied before sums are formed.
__device__ __align__(16) float row_scale[MAX_LINES], column_scale[MAX_LINES];

// The progress of a launch. All members are zero between launches, which must not overlap.
struct Progress {
    unsigned helpers, tickets, blocks_done;
    unsigned inspections, inspected, sums, summed;  // units taken, units done
    unsigned worst[3][2];  // bits of maxima: kurtosis, imbalance, bias; of A, of B
    unsigned mixed;        // lines that are added, with sums of both signs or equal elements
};
__device__ Progress progress;

struct Problem {
    const float *A, *B;
    float* C;
    int M, N, K;
    bool fast;                 // products of quarters are faster and fit
    int height, depth, width;  // size of a product: of quarters or of whole matrices
    int tile_rows, tile_cols, tiles, steps;
    int workers;  // blocks
};

// Quarters are numbered 0 1 / 2 3, sums of quarters 4 to 7.
constexpr int NONE = -1;

// C[to] = C[from] + sign * product. `whole`: this is the last step of quarter `to`.
struct Step {
    int from, to;
    float sign;
    bool whole;
};

struct Product {
    int a, b;
    Step steps[2];
};

// Winograd's form of Strassen's algorithm (see sums_of):
//   P1 = A11 B11, P2 = A12 B21, P3 = S4 B22, P4 = A22 T4, P5 = S1 T1, P6 = S2 T2, P7 = S3 T3
//   C11 = P1 + P2, C12 = P1 + P6 + P5 + P3, C22 = P1 + P6 + P7 + P5, C21 = P1 + P6 + P7 - P4
__constant__ Product SEVEN[7] = {
    {0, 0, {{NONE, 1, 1, false}, {NONE, NONE}}},  // P1
    {1, 2, {{1, 0, 1, true}, {NONE, NONE}}},      // P2: C11
    {5, 5, {{1, 1, 1, false}, {NONE, NONE}}},     // P6: U2 = P1 + P6
    {6, 6, {{1, 3, 1, false}, {NONE, NONE}}},     // P7: U3 = U2 + P7
    {3, 7, {{3, 2, -1, true}, {NONE, NONE}}},     // P4: C21 = U3 - P4
    {4, 4, {{3, 3, 1, true}, {1, 1, 1, false}}},  // P5: C22 = U3 + P5, U4 = U2 + P5
    {7, 3, {{1, 1, 1, true}, {NONE, NONE}}},      // P3: C12 = U4 + P3
};

// A destination of a tile of a product: to = (from + sign * product) / scale
struct Output {
    const float* from;  // null: zero
    float* to;
    float sign;
    const float *rows, *columns;  // scales to divide by; null: none
};

// A unit of work: the stages begin to end - 1 of one tile of a product.
struct Work {
    bool done;           // no work is left
    const float *A, *B;  // first row of A and first column of B of the tile
    int pitch_a, pitch_b;
    const float *rows, *columns;  // scales to apply to the product of unscaled operands
    int row0, col0;
    int begin, end;          // stages
    int split, part, parts;  // number of the split tile, of this part, and of parts
    int tile, product;
    int outputs;
    Output output[2];
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

__device__ __forceinline__ void wait_for(const unsigned* counter, unsigned count) {
    unsigned value;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    } while (value < count);
}

// ---- phase one: sums of quarters ---------------------------------------------------------------

// Moments of a row or column: each half's sum and sum of squares, and the sum of all fourth powers.
struct Moments {
    float first[2] = {}, second[2] = {}, fourth = 0.0f;

    __device__ __forceinline__ void add(float x, int piece) {
        float square = x * x;
        first[piece] += x;
        second[piece] += square;
        fourth += square * square;
    }

    __device__ __forceinline__ void add(float4 v, int piece) {
        add(v.x, piece), add(v.y, piece), add(v.z, piece), add(v.w, piece);
    }

    __device__ __forceinline__ void add(const Moments& other) {
#pragma unroll
        for (int i = 0; i < 2; ++i) first[i] += other.first[i], second[i] += other.second[i];
        fourth += other.fourth;
    }

    __device__ __forceinline__ void add_lanes() {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            Moments other;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                other.first[i] = __shfl_xor_sync(~0u, first[i], distance);
                other.second[i] = __shfl_xor_sync(~0u, second[i], distance);
            }
            other.fourth = __shfl_xor_sync(~0u, fourth, distance);
            add(other);
        }
    }

    __device__ __forceinline__ float square() const { return second[0] + second[1]; }

    // Returns how unevenly the squares are distributed: 1 if all are equal, 1.8 for uniform
    // numbers, 3 for normal ones, N for a single one. The result is infinite or NaN if all are
    // zero, or if they are so large or small that the moments overflow or vanish.
    __device__ __forceinline__ float kurtosis(int N) const {
        return fourth > 1e-30f ? N * fourth / (square() * square()) : __int_as_float(0x7f800000);
    }

    // Returns the largest ratio of a half's sum of squares to its share, half of the total.
    __device__ __forceinline__ float imbalance() const {
        return 2.0f / square() * fmaxf(second[0], second[1]);
    }

    // Returns the largest magnitude of a half's sum, relative to the norm of the row.
    __device__ __forceinline__ float bias() const {
        return rsqrtf(square()) * fmaxf(fabsf(first[0]), fabsf(first[1]));
    }

    // Returns the least and the largest sum of a half.
    __device__ __forceinline__ float least() const { return fminf(first[0], first[1]); }
    __device__ __forceinline__ float most() const { return fmaxf(first[0], first[1]); }
};

// Computes scales for two rows (which = 0) or columns (1) that are added, so that both have about
// the norm of the first. Records their worst moments.
__device__ __forceinline__ void judge(const Moments (&lines)[2], int N, int which, float* scale,
                                      int distance) {
    unsigned worst[3] = {};  // bits of floats, so that NaN counts as large
    float least = lines[0].least(), most = lines[0].most();
    bool equal = false;  // the rounding errors of equal elements add up
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float binary = rintf(0.5f * log2f(lines[0].square() / lines[i].square()));
        int exponent = max(-120, min(120, (int)binary));
        scale[i * distance] = __int_as_float((127 + exponent) << 23);
        worst[0] = max(worst[0], __float_as_uint(lines[i].kurtosis(N)));
        worst[1] = max(worst[1], __float_as_uint(lines[i].imbalance()));
        worst[2] = max(worst[2], __float_as_uint(lines[i].bias()));
        least = fminf(least, lines[i].least()), most = fmaxf(most, lines[i].most());
        equal |= lines[i].kurtosis(N) < 1.01f;
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) atomicMax(&progress.worst[i][which], worst[i]);
    if (equal || (least <= 0 && most >= 0)) atomicAdd(&progress.mixed, 1u);
}

// Returns whether the moments of all rows and columns permit sums of quarters. Where rows that are
// added have sums of one sign, and columns, too, no products cancel: the error is small relative
// to C, however large the bias is.
__device__ __forceinline__ bool suited(const Problem& p) {
    auto product = [](const unsigned* worst) {
        return __uint_as_float(__ldcg(&worst[0])) * __uint_as_float(__ldcg(&worst[1]));
    };
    return product(progress.worst[0]) <= 14.0f && product(progress.worst[1]) <= 1.5f &&
           (!__ldcg(&progress.mixed) || product(progress.worst[2]) <= 0.5f * sqrtf((float)p.N));
}

constexpr int ROWS = 8, COLUMNS = 16;  // pairs of rows or columns in a unit of inspection

// Inspects ROWS groups of rows of A, one group per warp.
__device__ __forceinline__ void inspect_rows(const Problem& p, int unit) {
    int lane = thread() % 32, row = unit * ROWS + thread() / 32;
    const float4* from = (const float4*)(p.A + (size_t)row * p.N);
    size_t distance = (size_t)p.height * p.N / 4;
    int depth = p.depth / 4;
    Moments moments[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll 8
        for (int k = lane; k < depth; k += 32)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                moments[i].add(__ldcs(from + i * distance + half * depth + k), half);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) moments[i].add_lanes();
    if (lane == 0) judge(moments, p.N, 0, &row_scale[row], p.height);
}

// Inspects two groups of 16 columns. Four threads share a group, with 4 columns each.
__device__ __forceinline__ void inspect_columns(const Problem& p, int unit, float* shared) {
    int group = thread() % 8, row0 = thread() / 8;
    int column = unit * COLUMNS + group / 4 * p.width + group % 4 * 4;
    int depth = p.depth, pitch = p.K / 4;
    Moments moments[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float4* from = (const float4*)(p.B + (size_t)(half * depth) * p.K + column);
#pragma unroll 16
        for (int row = row0; row < depth; row += 32) {
            float4 v = __ldcs(from + (size_t)row * pitch);
            moments[0].add(v.x, half), moments[1].add(v.y, half);
            moments[2].add(v.z, half), moments[3].add(v.w, half);
        }
    }
    Moments(*all)[2][COLUMNS] = (Moments(*)[2][COLUMNS])shared;  // by row0, group, column
#pragma unroll
    for (int i = 0; i < 4; ++i) all[row0][group / 4][group % 4 * 4 + i] = moments[i];
    __syncthreads();
    if (thread() < COLUMNS) {
        Moments columns[2];
#pragma unroll 1
        for (int row = 0; row < 32; ++row)
#pragma unroll
            for (int i = 0; i < 2; ++i) columns[i].add(all[row][i][thread()]);
        judge(columns, p.N, 1, &column_scale[unit * COLUMNS + thread()], p.width);
    }
}

__device__ __forceinline__ float4 operator+(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
__device__ __forceinline__ float4 operator-(float4 x, float4 y) {
    return make_float4(x.x - y.x, x.y - y.y, x.z - y.z, x.w - y.w);
}
__device__ __forceinline__ float4 operator*(float4 x, float4 y) {
    return make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
}

constexpr int SUMS_A_TIME = 4, SUMS_UNIT = 256 * SUMS_A_TIME * 4;  // float4s of a quarter in a unit

// S1 = A21 + A22, S2 = S1 - A11, S3 = A11 - A21, S4 = A12 - S2
// T1 = B12 - B11, T2 = B22 - T1, T3 = B22 - B12, T4 = T2 - B21
template <bool OF_A>
__device__ __forceinline__ void sums_of(float4 x11, float4 x12, float4 x21, float4 x22,
                                        float4 (&sums)[4]) {
    if (OF_A)
        sums[0] = x21 + x22, sums[1] = sums[0] - x11, sums[2] = x11 - x21, sums[3] = x12 - sums[1];
    else
        sums[0] = x12 - x11, sums[1] = x22 - sums[0], sums[2] = x22 - x12, sums[3] = sums[1] - x21;
}

// Scales a unit of all parts of A or B, and stores its sums in the pool.
template <bool OF_A>
__device__ __forceinline__ void form_sums(const Problem& p, int unit) {
    int rows = OF_A ? p.height : p.depth, columns = OF_A ? p.depth : p.width;
    unsigned width = columns / 4, count = rows * width;
    const float4* matrix = (const float4*)(OF_A ? p.A : p.B);
    float4* to = (float4*)pool + (OF_A ? 0 : (size_t)p.height * p.depth);
#pragma unroll 1
    for (unsigned first = unit * SUMS_UNIT + thread(); first < min((unit + 1) * SUMS_UNIT, count);
         first += 256 * SUMS_A_TIME) {
        float4 x[SUMS_A_TIME][4];
#pragma unroll
        for (int n = 0; n < SUMS_A_TIME; ++n) {
            unsigned at = min(first + n * 256, count - 1), row = at / width, column = at % width;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                x[n][i] = __ldcs(matrix + (size_t)(row + i / 2 * rows) * (2 * width) + column +
                                 i % 2 * width);
        }
#pragma unroll
        for (int n = 0; n < SUMS_A_TIME; ++n) {
            unsigned at = first + n * 256, row = at / width, column = at % width;
            if (at >= count) break;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float4 scale;
                if (OF_A)
                    scale.x = scale.y = scale.z = scale.w = __ldcg(&row_scale[row + i / 2 * rows]);
                else
                    scale = __ldcg((const float4*)column_scale + column + i % 2 * width);
                x[n][i] = x[n][i] * scale;
            }
            float4 sums[4];
            sums_of<OF_A>(x[n][0], x[n][1], x[n][2], x[n][3], sums);
#pragma unroll
            for (int i = 0; i < 4; ++i) to[at + (size_t)i * count] = sums[i];
        }
    }
}

__device__ __forceinline__ unsigned units(size_t all, size_t unit) {
    return (unsigned)((all + unit - 1) / unit);
}
__device__ __forceinline__ unsigned inspections(const Problem& p) {
    return p.height / ROWS + p.width / COLUMNS;
}
__device__ __forceinline__ unsigned sums_of_a(const Problem& p) {
    return units((size_t)p.height * p.depth / 4, SUMS_UNIT);
}
__device__ __forceinline__ unsigned sums_of_b(const Problem& p) {
    return units((size_t)p.depth * p.width / 4, SUMS_UNIT);
}

// Takes units from a work counter and computes them, until none is left.
template <class Make>
__device__ __forceinline__ void make_all(unsigned* tickets, unsigned* finished, unsigned units,
                                         Make make) {
    __shared__ unsigned drawn;
    if (thread() == 0) drawn = atomicAdd(tickets, 1u);
    __syncthreads();
    for (unsigned unit = drawn; unit < units; unit = drawn) {
        unsigned next = 0;
        if (thread() == 0) next = atomicAdd(tickets, 1u);  // the latency overlaps the unit
        make(unit);
        __syncthreads();
        if (thread() == 0) drawn = next;
        __syncthreads();
        if (thread() == 0) {
            __threadfence();  // the unit's results are visible before the count
            atomicAdd(finished, 1u);
        }
    }
}

// Phase one, for a helper block. It waits only for units that running blocks have taken.
__device__ __noinline__ void prepare(const Problem& p, float* shared) {
    unsigned rows = p.height / ROWS;
    make_all(&progress.inspections, &progress.inspected, inspections(p), [&](unsigned unit) {
        if (unit < rows)
            inspect_rows(p, unit);
        else
            inspect_columns(p, unit - rows, shared);
    });
    if (thread() == 0) wait_for(&progress.inspected, inspections(p));
    __syncthreads();
    if (!suited(p)) return;
    unsigned of_a = sums_of_a(p);
    make_all(&progress.sums, &progress.summed, of_a + sums_of_b(p), [&](unsigned unit) {
        if (unit < of_a)
            form_sums<true>(p, unit);
        else
            form_sums<false>(p, unit - of_a);
    });
}

// ---- phase two: the products -------------------------------------------------------------------

// Accumulates whole stages of a tile that is inside C. Rows of B must be aligned to 16 bytes.
__device__ __forceinline__ void multiply(const Work& work, int end, unsigned shared,
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
    const float* from_a = work.A + (size_t)a_row * work.pitch_a + work.begin * BK + a_k;
    const float* from_b = work.B + (size_t)(work.begin * BK + b_k) * work.pitch_b + b_col;
    unsigned to_a = shared + (a_k * PITCH + a_row) * 4;
    unsigned to_b = shared + A_BYTES + (b_k * BN + b_col) * 4;
    unsigned read_a = shared + thread_row() * 4, read_b = shared + A_BYTES + thread_col() * 4;
    unsigned a_pass = work.pitch_a * (PASS_ROWS * 4u), b_stage = work.pitch_b * (BK * 4u);  // bytes
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

// Accumulates any tile. Copies have 4 bytes and write zeros for elements outside the matrices.
__device__ __forceinline__ void multiply_edge(const float* A, const float* B, int M, int N, int K,
                                              const Work& work, unsigned shared,
                                              float (&sum)[TM][TN]) {
    auto copy = [&](int step, unsigned to) {
        int k = step * BK + thread() % BK, col = work.col0 + thread();
#pragma unroll 1
        for (int i = thread() / BK; i < BM; i += 256 / BK) {
            bool inside = work.row0 + i < M && k < N;
            copy4_or_zero(to + (thread() % BK * PITCH + i) * 4,
                          inside ? A + (size_t)(work.row0 + i) * N + k : A, inside);
        }
#pragma unroll 1
        for (int i = 0; i < BK; ++i) {
            bool inside = step * BK + i < N && col < K;
            copy4_or_zero(to + A_BYTES + (i * BN + thread()) * 4,
                          inside ? B + (size_t)(step * BK + i) * K + col : B, inside);
        }
    };

    unsigned now = shared, next = shared + STAGE_BYTES;
    __syncthreads();
    copy(work.begin, now);
#pragma unroll 1
    for (int step = work.begin; step < work.end;) {
        wait_for_copies();
        if (++step < work.end) copy(step, next);
#pragma unroll 1
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load4(&a[i], now + (k * PITCH + thread_row() + i * 4) * 4);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load4(&b[j], now + A_BYTES + (k * BN + thread_col() + j * 8) * 4);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
        }
        unsigned free = now;
        now = next, next = free;
    }
}

// Stores this part's sums in the buffer. Returns true for the last part of a tile to arrive; its
// `sum` then has the total. Parts are added in the order of N, so the result is reproducible.
__device__ __forceinline__ bool combine(const Work& work, float (&sum)[TM][TN]) {
    __shared__ bool is_last;
    int first = work.split * work.parts;
    float(*mine)[256] = partial_sums[first + work.part];
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) mine[i][thread()] = sum[i / TN][i % TN];
    __threadfence();  // the sums are visible before the count
    __syncthreads();
    if (thread() == 0) {
        is_last = atomicAdd(&parts_done[work.split], 1u) == work.parts - 1;
        if (is_last) parts_done[work.split] = 0;  // for the next launch
    }
    __syncthreads();
    if (!is_last) return false;

    __threadfence();  // the sums of other parts are read after the count
#pragma unroll
    for (int i = 0; i < TM * TN; ++i) sum[i / TN][i % TN] = 0.0f;
#pragma unroll 1
    for (int part = 0; part < work.parts; ++part)
#pragma unroll
        for (int i = 0; i < TM * TN; ++i)
            sum[i / TN][i % TN] += __ldcg(&partial_sums[first + part][i][thread()]);
    return true;
}

// Adds a tile of a product to one of its destinations.
__device__ __forceinline__ void put(const Work& work, const Output& out, int pitch,
                                    const float (&sum)[TM][TN]) {
    constexpr int A_TIME = 4;  // rows whose old values are loaded together
    int row = work.row0 + thread_row(), col = work.col0 + thread_col();
    auto inverse = [](float power) { return __int_as_float((254 << 23) - __float_as_int(power)); };
    float columns[TN], columns_out[TN];
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        int right = col + j / 4 * 32 + j % 4;
        columns[j] = work.columns ? __ldcg(work.columns + right) * out.sign : out.sign;
        columns_out[j] = out.columns ? inverse(__ldcg(out.columns + right)) : 1;
    }
#pragma unroll
    for (int i0 = 0; i0 < TM; i0 += A_TIME) {
        float4 before[A_TIME][TN / 4];
        float rows[A_TIME], rows_out[A_TIME];
#pragma unroll
        for (int n = 0; n < A_TIME; ++n) {
            int down = row + (i0 + n) / 4 * 16 + n % 4;
            rows[n] = work.rows ? __ldcg(work.rows + down) : 1;
            rows_out[n] = out.rows ? inverse(__ldcg(out.rows + down)) : 1;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                size_t at = (size_t)down * pitch + col + j * 8;
                float4 nothing = make_float4(0, 0, 0, 0);
                before[n][j / 4] = out.from ? __ldcg((const float4*)(out.from + at)) : nothing;
            }
        }
#pragma unroll
        for (int n = 0; n < A_TIME; ++n) {
            int i = i0 + n, down = row + i / 4 * 16 + i % 4;
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                auto add = [&](float before, int j) {
                    return (before + sum[i][j] * (rows[n] * columns[j])) *
                           (rows_out[n] * columns_out[j]);
                };
                float4 x = before[n][j / 4];
                *(float4*)(out.to + (size_t)down * pitch + col + j * 8) =
                    make_float4(add(x.x, j), add(x.y, j + 1), add(x.z, j + 2), add(x.w, j + 3));
            }
        }
    }
}

// Computes a unit of work. Returns true if it has completed a tile of a product.
template <bool EDGE>
__device__ __forceinline__ bool compute(const Problem& p, const Work& work, float* stages) {
    unsigned shared = (unsigned)__cvta_generic_to_shared(stages);
    float sum[TM][TN] = {};
    if (EDGE)
        multiply_edge(p.A, p.B, p.M, p.N, p.K, work, shared, sum);
    else {
        int end = min(work.end, p.depth / BK);
        if (work.begin < end) multiply(work, end, shared, sum);
        if (end < work.end) multiply_rest(p.A, p.B, p.N, p.K, work, sum);
    }
    if (work.parts > 1 && !combine(work, sum)) return false;

    if (EDGE) {
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                int row = work.row0 + thread_row() + i / 4 * 16 + i % 4;
                int col = work.col0 + thread_col() + j / 4 * 32 + j % 4;
                if (row < p.M && col < p.K) p.C[(size_t)row * p.K + col] = sum[i][j];
            }
        return false;
    }
    // The products of a tile are added in order.
    if (thread() == 0) wait_for(&products_done[work.tile], work.product);
    __syncthreads();
#pragma unroll 1
    for (int n = 0; n < work.outputs; ++n) put(work, work.output[n], p.K, sum);
    return true;
}

// Returns the number of parts per tile that minimises rounds / parts, the time in whole tiles.
__device__ __forceinline__ int best_parts(int tiles, int steps, int workers) {
    int best = 1, limit = min(PARTS_OF_TILE, min(steps / MIN_STEPS, PARTS / max(tiles, 1)));
    auto rounds = [&](int parts) { return (tiles * parts + workers - 1) / workers; };
    for (int parts = 2; parts <= limit; ++parts)
        if (rounds(parts) * best < rounds(best) * parts) best = parts;
    return best;
}

__device__ __forceinline__ void operand_a(const Problem& p, int down, int right, Work& work) {
    work.A = p.A + (size_t)(down * p.height + work.row0) * p.N + right * p.depth;
    work.pitch_a = p.N;
}
__device__ __forceinline__ void operand_b(const Problem& p, int down, int right, Work& work) {
    work.B = p.B + (size_t)(down * p.depth) * p.K + right * p.width + work.col0;
    work.pitch_b = p.K;
}
__device__ __forceinline__ float* quarter_of_c(const Problem& p, int quarter) {
    return p.C + (size_t)(quarter / 2 * p.height) * p.K + quarter % 2 * p.width;
}

// Describes one of the seven products.
__device__ __forceinline__ void fast_product(const Problem& p, int number, Work& work) {
    const Product& product = SEVEN[number];
    work.rows = work.columns = nullptr;
    if (product.a < 4) {
        operand_a(p, product.a / 2, product.a % 2, work);
        if (product.a / 2 > 0) work.rows = row_scale + p.height;
    } else {
        size_t size = (size_t)p.height * p.depth;
        work.A = pool + (product.a - 4) * size + (size_t)work.row0 * p.depth;
        work.pitch_a = p.depth;
    }
    if (product.b < 4) {
        operand_b(p, product.b / 2, product.b % 2, work);
        if (product.b % 2 > 0) work.columns = column_scale + p.width;
    } else {
        size_t size = (size_t)p.depth * p.width, of_a = (size_t)4 * p.height * p.depth;
        work.B = pool + of_a + (product.b - 4) * size + work.col0;
        work.pitch_b = p.width;
    }
    work.outputs = 0;
    for (int i = 0; i < 2 && product.steps[i].to != NONE; ++i) {
        const Step& step = product.steps[i];
        work.output[work.outputs++] = {
            step.from == NONE ? nullptr : quarter_of_c(p, step.from), quarter_of_c(p, step.to),
            step.sign, step.whole && step.to / 2 > 0 ? row_scale + p.height : nullptr,
            step.whole && step.to % 2 > 0 ? column_scale + p.width : nullptr};
    }
}

// Describes one of the eight ordinary products, two for each quarter of C. The first two are also
// the first two of the seven, so that the algorithm can be chosen after them.
__device__ __forceinline__ void ordinary_product(const Problem& p, int number, Work& work) {
    int down = number / 4, right = number / 2 % 2, along = number % 2;
    operand_a(p, down, along, work), operand_b(p, along, right, work);
    float* to = quarter_of_c(p, down * 2 + right);
    work.rows = work.columns = nullptr;
    work.outputs = 1;
    work.output[0] = {along > 0 ? to : nullptr, to, 1, nullptr, nullptr};
}

// The work of phase two, which depends on the moments.
struct Plan {
    int products;  // 0: not decided yet
    int whole;     // number of tiles that are not split; they come first
    int split, parts;
};

__device__ __forceinline__ void decide(const Problem& p, Plan& plan) {
    plan.products = 1;
    if (p.fast) {
        wait_for(&progress.inspected, inspections(p));
        plan.products = suited(p) ? 7 : 8;
        if (plan.products == 7) wait_for(&progress.summed, sums_of_a(p) + sums_of_b(p));
    }
    int tiles = plan.products * p.tiles;
    plan.split = tiles % p.workers;
    plan.whole = tiles - plan.split;
    plan.parts = best_parts(plan.split, p.steps, p.workers);
}

// Takes the next unit of work. Tickets follow the order of products. A block waits only for lower
// tickets, which running blocks have taken, so no scheduling order of the blocks can deadlock.
__device__ __noinline__ void next_work(const Problem& p, Plan& plan, Work& work) {
    int item = atomicAdd(&progress.tickets, 1u);
    if (plan.products == 0 && (!p.fast || item >= 2 * p.tiles)) decide(p, plan);
    work.part = 0, work.parts = 1;
    if (plan.products > 0 && item >= plan.whole) {
        work.parts = plan.parts;
        work.part = (item - plan.whole) % plan.parts, work.split = (item - plan.whole) / plan.parts;
        item = plan.whole + work.split;
    }
    work.done = plan.products > 0 && item >= plan.whole + plan.split;
    if (work.done) return;

    work.product = item / p.tiles, work.tile = item % p.tiles;
    int band = work.tile / (RASTER_ROWS * p.tile_cols);
    int within = work.tile % (RASTER_ROWS * p.tile_cols);
    int height = min(p.tile_rows - band * RASTER_ROWS, RASTER_ROWS);
    work.row0 = (band * RASTER_ROWS + within % height) * BM, work.col0 = within / height * BN;
    work.begin = p.steps * work.part / work.parts;
    work.end = p.steps * (work.part + 1) / work.parts;
    if (p.fast && plan.products != 8)
        fast_product(p, work.product, work);
    else
        ordinary_product(p, work.product, work);
}

__device__ __forceinline__ void describe(const float* A, const float* B, float* C, int M, int N,
                                         int K, Problem& p) {
    p.A = A, p.B = B, p.C = C, p.M = M, p.N = N, p.K = K;
    bool aligned = ((size_t)A | (size_t)B | (size_t)C) % 16 == 0;
    long long tiles = (long long)(M / (2 * BM)) * (K / (2 * BN));
    p.fast = aligned && M % (2 * BM) == 0 && K % (2 * BN) == 0 && N % (2 * BK) == 0 &&
             N >= MIN_DEPTH && N <= MAX_DEPTH && max(M, K) <= MAX_LINES && tiles >= MIN_TILES &&
             tiles <= MAX_TILES && (long long)N * M + (long long)N * K <= POOL_FLOATS;
    int cuts = p.fast ? 2 : 1;
    p.height = M / cuts, p.depth = N / cuts, p.width = K / cuts;
    p.tile_rows = (p.height + BM - 1) / BM, p.tile_cols = (p.width + BN - 1) / BN;
    p.tiles = p.tile_rows * p.tile_cols, p.steps = (p.depth + BK - 1) / BK;
}

// Permits the next product of a tile to be added, after this one is visible.
__device__ __forceinline__ void announce_product(const Plan& plan, const Work& work) {
    bool last = work.product == plan.products - 1;  // zero for the next launch
    __threadfence();
    atomicExch(&products_done[work.tile], last ? 0 : work.product + 1);
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float stages[];
    __shared__ Work work;
    __shared__ Plan plan;
    __shared__ Problem p;

    // One block fills a multiprocessor, so the others exit.
    unsigned multiprocessors, block = blockIdx.y * gridDim.x + blockIdx.x;
    asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
    unsigned workers = min(multiprocessors, gridDim.x * gridDim.y);
    if (block >= workers) return;

    if (thread() == 0) {
        describe(A, B, C, M, N, K, p);
        p.workers = workers;
        plan.products = 0;
    }
    __syncthreads();
    if (p.fast) {
        if (thread() == 0) plan.split = atomicAdd(&progress.helpers, 1u);
        __syncthreads();
        if (plan.split < HELPERS) prepare(p, stages);
    }
    if (thread() == 0) next_work(p, plan, work);
    __syncthreads();
#pragma unroll 1
    while (!work.done) {
        bool plain = p.fast || (work.row0 + BM <= M && work.col0 + BN <= K && K % 4 == 0 &&
                                (size_t)B % 16 == 0 && (size_t)C % 16 == 0);
        bool complete = plain ? compute<false>(p, work, stages) : compute<true>(p, work, stages);
        __syncthreads();
        if (thread() == 0) {
            if (complete) announce_product(plan, work);
            next_work(p, plan, work);
        }
        __syncthreads();
    }
    if (thread() == 0 && atomicAdd(&progress.blocks_done, 1u) == p.workers - 1) progress = {};
}
