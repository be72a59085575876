// FP32 accuracy from three FP16 products, on every input: each row scaled by a power of two.
// solve: tile=4096x4 shared_memory=232192
//
// Idea. A scaled value is x = h + l with h and l in FP16, which keeps 22 of 24 bits (Markidis and
// others, 2018; Ootomo and Yokota, 2022). Then
//     x y  =  l_x h_y + h_x l_y + h_x h_y  +  l_x l_y,
// and the last term is 2^-22 of the product or less: it is left out. BF16 (33) keeps 16 bits at the
// same speed; FP16 has less range, so 1024 neighbours of a row of A, or of a column of B, share a
// power of two that brings the largest of them to 2^12 .. 2^13. Scaling by powers of two is exact,
// and so are products of integers of up to 11 bits.
//
// It holds for every input: rows of any size beside each other, zero rows, outliers. Segments with a
// largest value outside 2^-80 .. 2^62, where intermediate products could leave a float's range, send
// the whole launch to plain FP32. These are elements near overflow, and denormals among themselves; a
// denormal beside an element above 2^-80 counts as zero, which the last term of the bound covers.
//
//     phase one: A, B  ->  pool, in the order in which wgmma reads it
//
//       a stage is 32 along the inner dimension, of 144 rows of A and 256 columns of B:
//         row   | high parts, 64 bytes | low parts, 64 bytes |      swizzled by 128 bytes
//       four stages are a chunk, eight chunks share a scale, four share an accumulator
//
//     all blocks wait for all units of phase one
//
//     phase two: a block multiplies tiles of 144 x 256, two warpgroups of 128 columns each
//
//       a stage:  l h   h l   l h   h l   h h   h h      (k = 0..15 and 16..31, small products first)
//       the last of the eight warps that is through with a stage refills its slot: no producer warp
//       a warpgroup takes one half of its columns out of the accumulators while the other half is
//       still multiplied, so that the tensor cores never run dry
//
// Error, for every input. u is 2^-24, |A||B| the sum of the products' magnitudes, m_A and m_B the
// largest magnitudes among the 1024 neighbours of an element.
//     |fl(C) - C|  <=  (2 min(N, 512) + N / 512 + 13) u |A||B|  +  2^-36 (m_A |B| + |A| m_B)
//   Splitting: |x - h| <= 2^-11 |x|, and |x - h - l| <= 2^-22 |x| + 2^-37 m, since FP16 has no more
//   digits below 2^-14 (Dekker, 1971; Markidis and others, 2018). What h + l misses of x and of y, and
//   l_x l_y, are 2^-22 of the product each: 12 u in all.
//   Tensor cores: a wgmma adds 16 exact products to its accumulator at once. Each of the 17 summands is
//   cut off 2^-25 below the largest, and the sum to 24 bits (Fasi, Higham, Mikaitis and Pranesh, 2021).
//   That is 10.5 u of what the accumulator holds, six times in a stage, 96 times between two
//   promotions: less than 2 u for each of up to 512 products.
//   Promotions: N / 512 sums in float32. Scaling by powers of two is exact.
// Any float32 sum of N products keeps N u |A||B| (Higham, 2002), so the bound is that of a float32 sum
// of some 1100 products, however many there are. Errors of random inputs average out: 2e-6 by the rule,
// as cuBLAS has, and 3.5e-6 where all products are of one sign. tests/test_error_bounds.py has the
// inputs that were made to break the bound.
//
// No order of blocks can deadlock. Rows and strips of columns are drawn by ticket, and a block waits
// only for units that others have drawn, which wait for nobody. Counters carry the number of the
// launch; two launches of this kernel must not overlap. The launch line asks for tiles of 4096 x 4,
// because a block without work costs 5 ns: the ranked size has 2048 blocks for its 132 workers.
//
// Should gain: nothing in time over 33, and eight times its accuracy.
// In the judge, on an H200: 4.765 x cuBLAS (95 %: 4.762 to 4.768), 1.711 ms, 0.99 x the speed of
// 33; 255 registers, 232192 B of shared memory, 1 block a multiprocessor.
// reports/h200/34_wgmma_fp16_scaled.json has the rest.
constexpr int BM = 144;     // rows of C in a tile: wgmma's N
constexpr int BN = 256;     // columns of C in a tile: twice wgmma's M for each warpgroup
constexpr int DEPTH = 128;  // inner dimension of a chunk: four stages
constexpr int SEGMENT = 8;  // chunks that share a scale
constexpr int ROW_BYTES =
    128;                  // a row of a stage: the high parts of STEP values, then the low parts
constexpr int STEP = 32;  // inner dimension of a stage
constexpr int CHUNK_STAGES = DEPTH / STEP;
constexpr int PROMOTE = 4;  // chunks between two promotions
constexpr int STAGES = 3;
constexpr unsigned RASTER = 6;    // tile columns that tiles of neighbouring blocks share
constexpr int PART_COLUMNS = 32;  // of a part in plain FP32, BM rows
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int B_BYTES = BN * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int WARPS = 8;
constexpr int ROW_SLOTS = 2;  // segments of rows of A on their way to a warp
constexpr long long POOL_BYTES = 544ll << 20;

// The split matrices, in the layout that wgmma reads from shared memory.
__device__ __align__(1024) unsigned char pool[POOL_BYTES];
// What undoes the scale of each row of A, column of B, in each segment.
__device__ __align__(16) float factors_a[POOL_BYTES / (CHUNK_STAGES * ROW_BYTES)];
__device__ __align__(16) float factors_b[POOL_BYTES / (CHUNK_STAGES * ROW_BYTES)];

// Launch-wide counters: the epoch of the launch in the high 40 bits, a count in the low 24.
__device__ unsigned long long strip_tickets;
__device__ unsigned long long row_tickets;
__device__ unsigned long long units_done;
__device__ unsigned long long blocks_done;
__device__ unsigned long long extreme_range;  // the epoch of the last launch that needs plain FP32
constexpr int COUNT_BITS = 24;

struct Shape {
    int M, N, K;
    unsigned row_tiles, column_tiles, tiles;
    unsigned chunks, segments;  // along the inner dimension
    unsigned strips;            // of STRIP columns of B
    unsigned workers;           // blocks that do all the work
};

struct Control {
    alignas(16) float row_factors[2][BM];  // of the rows of A of even and odd pieces
    alignas(16) float column_factors[2][BN];
    unsigned long long full[STAGES];  // mbarriers: a stage has arrived
    unsigned released[STAGES];        // warps that are through with a stage, ever growing
    unsigned ticket[2];
    unsigned long long arrived[WARPS][ROW_SLOTS];  // mbarriers: a segment of a row has arrived
};

constexpr int THREADS = WARPS * 32;
constexpr int SUM_BYTES = THREADS * BM / 2 * (int)sizeof(float);  // half of the sums of a tile

static_assert(1024 + STAGES * STAGE_BYTES + SUM_BYTES + sizeof(Control) <= 232192,
              "shared memory of the launch line");

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// ---- launch-wide counters ---------------------------------------------------------------------

// Larger in each launch, so that counters left by an aborted launch are recognised as old.
__device__ __forceinline__ unsigned long long launch_epoch() {
    unsigned long long id;
    asm("mov.u64 %0, %%gridid;" : "=l"(id));
    return (id + 1) << COUNT_BITS;
}

__device__ __forceinline__ unsigned multiprocessors() {
    unsigned count;
    asm("mov.u32 %0, %%nsmid;" : "=r"(count));
    return count;
}

__device__ __forceinline__ unsigned take(unsigned long long* counter) {
    return (unsigned)(atomicAdd(counter, 1ull) & ((1u << COUNT_BITS) - 1));
}

__device__ __forceinline__ unsigned long long load_acquire(const unsigned long long* p) {
    unsigned long long value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

// ---- asynchronous copies and barriers ---------------------------------------------------------

__device__ __forceinline__ void async_proxy_fence() {
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ void barrier_init(unsigned long long* barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(count));
}

__device__ __forceinline__ void barrier_expect(unsigned long long* barrier, int bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned long long* barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}\n" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void bulk_load(void* to, const void* from, int bytes,
                                          unsigned long long* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

__device__ __forceinline__ void bulk_store(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Shared memory descriptor: K-major, 128-byte swizzle, 1024 bytes from 8 rows to the next 8.
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Where 16 bytes of a row lie in a stage's image, by the 128-byte swizzle of wgmma.
__device__ __forceinline__ int place(int row, int segment) {
    return row * ROW_BYTES + (segment ^ row % 8) * 16;
}

constexpr long long SMALL = 8'000'000;  // multiply-adds below which plain FP32 is faster

// ---- phase one: x = high + low, both FP16, scaled -----------------------------------------------

// The power of two that brings the largest magnitude of a segment of a row to 2^12..2^13, and what
// undoes it. Extreme: so large or so small that intermediate products could leave a float's range.
struct Scale {
    float scale, factor;
    bool extreme;
};

__device__ __forceinline__ Scale scale_for(unsigned largest) {
    const int exponent = largest >> 23;
    const bool zero = largest == 0;
    const bool extreme = !zero && (exponent < 127 - 80 || exponent > 127 + 62);
    if (zero || extreme) return {1.0f, 1.0f, extreme};
    return {__uint_as_float((266 - exponent) << 23), __uint_as_float((exponent - 12) << 23), false};
}

// The largest magnitude of four values, as the bits of a float.
__device__ __forceinline__ unsigned magnitude(float4 v) {
    return __float_as_uint(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
}

// Four values after scaling, in FP16, and what FP16 lost of them.
struct Parts {
    uint2 high, low;
};

// Two floats to two packed pairs: the rounded values, and what rounding lost.
__device__ __forceinline__ void split(float x, float y, unsigned& high, unsigned& low) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
    float x_high, y_high;
    asm("{\n.reg .f16 p, q;\nmov.b32 {p, q}, %2;\ncvt.f32.f16 %0, p;\ncvt.f32.f16 %1, q;\n}\n"
        : "=f"(x_high), "=f"(y_high)
        : "r"(high));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y - y_high), "f"(x - x_high));
}

__device__ __forceinline__ Parts split(float4 v) {
    Parts p;
    split(v.x, v.y, p.high.x, p.low.x);
    split(v.z, v.w, p.high.y, p.low.y);
    return p;
}

__device__ __forceinline__ float4 scaled(float4 v, float scale) {
    return {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
}

constexpr int SEGMENT_LENGTH = SEGMENT * DEPTH;
constexpr int ROW_SLOT = SEGMENT_LENGTH * (int)sizeof(float);

// The rows of A that a warp draws, on their way to it: a segment in each slot of its ring in shared
// memory, so that memory is never without something to read.
struct RowRing {
    const float* A;
    const Shape& s;
    unsigned char* slots;
    unsigned long long* arrived;
    int lane;
    bool aligned;           // where rows do not begin at 16 bytes, nothing is loaded ahead
    unsigned row, segment;  // what is loaded next
    unsigned ahead;         // the row after that; only the first lane knows
    unsigned held;          // of lane i: the row in slot i

    __device__ __forceinline__ void start() {
        aligned = s.N % 4 == 0 && (size_t)A % 16 == 0;
        row = segment = ahead = held = 0;
        if (lane == 0) row = take(&row_tickets);
        row = __shfl_sync(0xffffffffu, row, 0);
#pragma unroll 1
        for (int slot = 0; slot < ROW_SLOTS; ++slot) load(slot);
    }

    __device__ __forceinline__ void load(int slot) {
        if (lane == slot) held = row;
        if (row >= s.M) return;
        if (segment + 1 == s.segments && lane == 0) ahead = take(&row_tickets);
        const unsigned k = segment * SEGMENT_LENGTH;
        if (aligned && lane == 0) {
            const int bytes = min((unsigned)SEGMENT_LENGTH, s.N - k) * (int)sizeof(float);
            barrier_expect(&arrived[slot], bytes);
            bulk_load(slots + slot * ROW_SLOT, A + (size_t)row * s.N + k, bytes, &arrived[slot]);
        }
        if (++segment < s.segments) return;
        segment = 0;
        row = __shfl_sync(0xffffffffu, ahead, 0);
    }
};

// A segment of a row of A as a warp holds it: of each chunk four values a lane.
struct RowPart {
    float4 v[SEGMENT];

    __device__ __forceinline__ void load(const unsigned char* slot, int length, int lane) {
#pragma unroll
        for (int i = 0; i < SEGMENT; ++i) {
            v[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (i * DEPTH + lane * 4 < length)
                v[i] = *reinterpret_cast<const float4*>(slot + (i * 32 + lane) * sizeof(float4));
        }
    }

    __device__ __forceinline__ void load_unaligned(const float* A, int length, int lane) {
#pragma unroll
        for (int i = 0; i < SEGMENT; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int k = i * DEPTH + lane * 4 + e;
                (&v[i].x)[e] = k < length ? A[k] : 0.0f;
            }
    }
};

// Split the rows of A that this warp draws. Returns how many rows it was.
__device__ __forceinline__ unsigned split_rows(RowRing& ring, unsigned long long epoch) {
    const Shape& s = ring.s;
    const int lane = ring.lane;
    bool extreme = false;
    unsigned segment = 0, done = 0, slot = 0, parity = 0;
#pragma unroll 1
    for (;;) {
        const unsigned row = __shfl_sync(0xffffffffu, ring.held, slot);
        if (row >= s.M) break;
        RowPart part;
        const int length = s.N - segment * SEGMENT_LENGTH;
        if (ring.aligned) {
            barrier_wait(&ring.arrived[slot], parity);
            part.load(ring.slots + slot * ROW_SLOT, length, lane);
        } else {
            part.load_unaligned(ring.A + (size_t)row * s.N + segment * SEGMENT_LENGTH, length,
                                lane);
        }
        unsigned largest = 0;
#pragma unroll
        for (int i = 0; i < SEGMENT; ++i) largest = max(largest, magnitude(part.v[i]));
        const Scale chosen = scale_for(__reduce_max_sync(0xffffffffu, largest));
        __syncwarp();
        ring.load(slot);
        extreme |= chosen.extreme;
        const unsigned tile = row / BM, tile_row = row % BM;
        unsigned char* to =
            pool + ((size_t)tile * s.chunks + segment * SEGMENT) * (CHUNK_STAGES * A_BYTES);
        unsigned char* stage = to + lane / 8 * A_BYTES + lane % 2 * 8;
        unsigned char* high = stage + place(tile_row, lane % 8 / 2);
        unsigned char* low = stage + place(tile_row, lane % 8 / 2 + 4);
#pragma unroll
        for (int i = 0; i < SEGMENT; ++i) {
            const Parts parts = split(scaled(part.v[i], chosen.scale));
            if (segment * SEGMENT + i < s.chunks) {
                *reinterpret_cast<uint2*>(high) = parts.high;
                *reinterpret_cast<uint2*>(low) = parts.low;
            }
            high += CHUNK_STAGES * A_BYTES;
            low += CHUNK_STAGES * A_BYTES;
        }
        if (lane == 0) factors_a[(tile * s.segments + segment) * BM + tile_row] = chosen.factor;
        if (++slot == ROW_SLOTS) {
            slot = 0;
            parity ^= 1;
        }
        if (++segment < s.segments) continue;
        segment = 0;
        ++done;
    }
    if (extreme && lane == 0) atomicMax(&extreme_range, epoch);
    return done;
}

constexpr int STRIP = 32;  // columns of B that a block splits at a time, each warp a chunk of them
constexpr int STRIP_BYTES = STRIP * ROW_BYTES;  // of a stage
static_assert(SEGMENT == WARPS, "each warp has a chunk of the segment");

// A segment of a strip on its way to the pool, and what the warps tell each other of its columns.
struct StripBuffer {
    unsigned char stages[WARPS][CHUNK_STAGES][STRIP_BYTES];
    unsigned largest[2][WARPS][STRIP];  // of even and odd segments
};
static_assert(sizeof(StripBuffer) + WARPS * ROW_SLOTS * ROW_SLOT <=
                  STAGES * STAGE_BYTES + SUM_BYTES,
              "the first phase uses the slots, and what is for sums");

// A chunk of a strip as a warp holds it: of one column a lane, all of the chunk.
struct StripPart {
    float4 v[DEPTH / 4];

    __device__ __forceinline__ void load(int i, const float* B, const Shape& s, unsigned strip,
                                         unsigned chunk, int lane) {
        const int column = strip * STRIP + lane, k = chunk * DEPTH + 4 * i;
        const int rows = column < s.K ? s.N - k : 0;
        const float* p = B + (size_t)k * s.K + column;
        const size_t step = s.K;
#pragma unroll
        for (int e = 0; e < 4; ++e, p += step) {
            (&v[i].x)[e] = 0.0f;
            if (e < rows) (&v[i].x)[e] = *p;
        }
    }
};

__device__ __forceinline__ unsigned char* pool_b(const Shape& s) {
    return pool + (size_t)s.row_tiles * s.chunks * (CHUNK_STAGES * A_BYTES);
}

// Split the strips of B that this block draws. Returns how many it was.
__device__ __forceinline__ unsigned split_strips(const float* B, const Shape& s,
                                                 unsigned long long epoch, int thread, Control& c,
                                                 StripBuffer& buffer) {
    const int warp = thread / 32, lane = thread % 32;
    unsigned strip = c.ticket[0], done = 0;
    if (strip >= s.strips) return 0;
    StripPart part;
#pragma unroll
    for (int i = 0; i < DEPTH / 4; ++i) part.load(i, B, s, strip, warp, lane);
    bool extreme = false;
    unsigned parity = 0;
    unsigned char(*stages)[STRIP_BYTES] = buffer.stages[warp];
#pragma unroll 1
    for (; strip < s.strips; ++done) {
        const unsigned tile = strip * STRIP / BN, tile_column = strip * STRIP % BN;
        unsigned next_strip = 0;
        if (thread == 0) next_strip = take(&strip_tickets);
#pragma unroll 1
        for (unsigned segment = 0; segment < s.segments; ++segment, parity ^= 1) {
            unsigned largest = 0;
#pragma unroll
            for (int i = 0; i < DEPTH / 4; ++i) largest = max(largest, magnitude(part.v[i]));
            buffer.largest[parity][warp][lane] = largest;
            if (thread == 0) c.ticket[1] = next_strip;
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            __syncthreads();
#pragma unroll
            for (int i = 0; i < WARPS; ++i) largest = max(largest, buffer.largest[parity][i][lane]);
            const bool last = segment + 1 == s.segments;
            const unsigned then_strip = last ? c.ticket[1] : strip;
            const unsigned then_chunk = (last ? 0 : segment + 1) * SEGMENT + warp;
            const Scale chosen = scale_for(largest);
            extreme |= chosen.extreme;
#pragma unroll
            for (int i = 0; i < DEPTH / 16; ++i) {
                Parts p[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) p[e] = split(scaled(part.v[4 * i + e], chosen.scale));
                unsigned char* to = stages[i / 2];
                const int segment16 = i % 2 * 2;
                *reinterpret_cast<uint4*>(to + place(lane, segment16)) =
                    make_uint4(p[0].high.x, p[0].high.y, p[1].high.x, p[1].high.y);
                *reinterpret_cast<uint4*>(to + place(lane, segment16 + 1)) =
                    make_uint4(p[2].high.x, p[2].high.y, p[3].high.x, p[3].high.y);
                *reinterpret_cast<uint4*>(to + place(lane, segment16 + 4)) =
                    make_uint4(p[0].low.x, p[0].low.y, p[1].low.x, p[1].low.y);
                *reinterpret_cast<uint4*>(to + place(lane, segment16 + 5)) =
                    make_uint4(p[2].low.x, p[2].low.y, p[3].low.x, p[3].low.y);
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    part.load(4 * i + e, B, s, then_strip, then_chunk, lane);
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            const unsigned chunk = segment * SEGMENT + warp;
            if (lane < CHUNK_STAGES && chunk < s.chunks) {
                const size_t stage = ((size_t)tile * s.chunks + chunk) * CHUNK_STAGES + lane;
                bulk_store(pool_b(s) + stage * B_BYTES + tile_column * ROW_BYTES, stages[lane],
                           STRIP_BYTES);
            }
            if (warp == 0)
                factors_b[(tile * s.segments + segment) * BN + tile_column + lane] = chosen.factor;
        }
        __syncthreads();
        strip = c.ticket[1];
        __syncthreads();
    }
    if (extreme) atomicMax(&extreme_range, epoch);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    return done;
}

// Split all that this block draws: strips of B, then each warp rows of A.
__device__ __forceinline__ void split_matrices(const float* A, const float* B, const Shape& s,
                                               unsigned long long epoch, int thread, Control& c,
                                               unsigned char* shared) {
    const int warp = thread / 32, lane = thread % 32;
    RowRing ring = {A, s, shared + sizeof(StripBuffer) + warp * ROW_SLOTS * ROW_SLOT,
                    c.arrived[warp], lane};
    ring.start();
    const unsigned strips =
        split_strips(B, s, epoch, thread, c, *reinterpret_cast<StripBuffer*>(shared));
    const unsigned rows = split_rows(ring, epoch);
    async_proxy_fence();
    __threadfence();
    __syncthreads();
    if (thread % 32 == 0)
        atomicAdd(&units_done, (unsigned long long)rows + (thread == 0 ? strips : 0));
}

// Wait until a counter is `count`; what it counts is held by running blocks, which wait for nobody.
__device__ __forceinline__ void wait_for(const unsigned long long* counter,
                                         unsigned long long count, int thread) {
    if (thread == 0)
        while (load_acquire(counter) < count) {}
    __syncthreads();
    async_proxy_fence();
}

// ---- phase two: C = low·high + high·low + high·high ---------------------------------------------

// acc (+)= A·B for one 64 x 144 x 16 step.
template <bool ACCUMULATE>
__device__ __forceinline__ void wgmma(float (&acc)[BM / 2], unsigned long long a,
                                      unsigned long long b) {
    asm volatile(
        "{wgmma.mma_async.sync.aligned.m64n144k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71}, "
        "%72, %73, %74, 1, 1, 0, 0;}\n"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
          "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]),
          "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]),
          "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]), "+f"(acc[22]), "+f"(acc[23]),
          "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]), "+f"(acc[29]),
          "+f"(acc[30]), "+f"(acc[31]), "+f"(acc[32]), "+f"(acc[33]), "+f"(acc[34]), "+f"(acc[35]),
          "+f"(acc[36]), "+f"(acc[37]), "+f"(acc[38]), "+f"(acc[39]), "+f"(acc[40]), "+f"(acc[41]),
          "+f"(acc[42]), "+f"(acc[43]), "+f"(acc[44]), "+f"(acc[45]), "+f"(acc[46]), "+f"(acc[47]),
          "+f"(acc[48]), "+f"(acc[49]), "+f"(acc[50]), "+f"(acc[51]), "+f"(acc[52]), "+f"(acc[53]),
          "+f"(acc[54]), "+f"(acc[55]), "+f"(acc[56]), "+f"(acc[57]), "+f"(acc[58]), "+f"(acc[59]),
          "+f"(acc[60]), "+f"(acc[61]), "+f"(acc[62]), "+f"(acc[63]), "+f"(acc[64]), "+f"(acc[65]),
          "+f"(acc[66]), "+f"(acc[67]), "+f"(acc[68]), "+f"(acc[69]), "+f"(acc[70]), "+f"(acc[71])
        : "l"(a), "l"(b), "n"((int)ACCUMULATE));
}

template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

struct Tile {
    unsigned row, column;
};

// Tiles of neighbouring blocks share RASTER tile columns, so that what runs together fits the L2
// cache.
__device__ __forceinline__ Tile tile_of(unsigned index, const Shape& s) {
    const unsigned per_raster = RASTER * s.row_tiles;
    const unsigned raster = index / per_raster, rest = index % per_raster;
    const unsigned width = min(RASTER, s.column_tiles - min(raster * RASTER, s.column_tiles - 1));
    return {rest / width, raster * RASTER + rest % width};
}

// What a block multiplies between two promotions: PROMOTE chunks of a tile.
struct Piece {
    unsigned index;         // of the tile
    unsigned chunk, count;  // the piece's first chunk and how many they are
    Tile tile;

    __device__ __forceinline__ void begin(unsigned tile_index, const Shape& s) {
        index = tile_index;
        tile = tile_of(tile_index, s);
        chunk = 0;
        count = min((unsigned)PROMOTE, s.chunks);
    }

    __device__ __forceinline__ bool is_last(const Shape& s) const {
        return chunk + count == s.chunks;
    }

    __device__ __forceinline__ void advance(const Shape& s) {
        if (is_last(s)) return begin(index + s.workers, s);
        chunk += count;
        count = min((unsigned)PROMOTE, s.chunks - chunk);
    }
};

// The next stage that this block loads. Every warp keeps its own copy and moves it along.
struct Cursor {
    Piece piece;
    unsigned step, parity;  // parity of the piece

    __device__ __forceinline__ void advance(const Shape& s) {
        if (++step < CHUNK_STAGES * piece.count) return;
        step = 0;
        parity ^= 1;
        piece.advance(s);
    }
};

// Where a stage of a tile begins in the pool.
struct Source {
    const unsigned char *rows, *columns;
};

__device__ __forceinline__ Source source_of(const Cursor& next, const Shape& s) {
    const Piece& p = next.piece;
    const unsigned stage = p.chunk * CHUNK_STAGES + next.step;
    const unsigned a = p.tile.row * s.chunks * CHUNK_STAGES + stage;
    const unsigned b = p.tile.column * s.chunks * CHUNK_STAGES + stage;
    return {pool + (size_t)a * A_BYTES, pool_b(s) + (size_t)b * B_BYTES};
}

// Start loading a stage into a slot, and with the last of a piece its factors; one thread.
__device__ __forceinline__ void load_stage(const Cursor& next, const Source& from, Control& c,
                                           const Shape& s, unsigned char* slots, int slot) {
    const Piece& p = next.piece;
    if (p.index >= s.tiles) return;
    unsigned char* to = slots + slot * STAGE_BYTES;
    unsigned long long* full = &c.full[slot];
    const bool last = next.step + 1 == CHUNK_STAGES * p.count;
    constexpr int ROW_FACTORS = BM * sizeof(float), COLUMN_FACTORS = BN * sizeof(float);
    barrier_expect(full, STAGE_BYTES + (last ? ROW_FACTORS + COLUMN_FACTORS : 0));
    bulk_load(to, from.rows, A_BYTES, full);
    bulk_load(to + A_BYTES, from.columns, B_BYTES, full);
    if (!last) return;
    const unsigned segment = p.chunk / SEGMENT;
    bulk_load(c.row_factors[next.parity], factors_a + (p.tile.row * s.segments + segment) * BM,
              ROW_FACTORS, full);
    bulk_load(c.column_factors[next.parity],
              factors_b + (p.tile.column * s.segments + segment) * BN, COLUMN_FACTORS, full);
}

// The stages of one block on their way through the slots of shared memory.
struct Ring {
    const Shape& s;
    Control& c;
    unsigned char* slots;
    unsigned slots_address;
    int lane, warpgroup;
    Cursor next;
    int slot, previous;
    unsigned parity;

    // Wait until all but PENDING steps are multiplied, and release the slot of the last that is. The
    // last of the eight warps to do so refills it, so nobody ever waits for a free slot. From where,
    // is found before the wait: no instruction comes between a slot that is free and its refilling
    // that could come earlier.
    template <int PENDING>
    __device__ __forceinline__ void release(int used) {
        const Source from = source_of(next, s);
        asm volatile("" ::"l"(from.rows), "l"(from.columns) : "memory");
        wgmma_wait<PENDING>();
        if (lane == 0) {
            unsigned before;
            asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
                         : "=r"(before)
                         : "r"(shared_address(&c.released[used]))
                         : "memory");
            if (before % WARPS == WARPS - 1) load_stage(next, from, c, s, slots, used);
        }
        __syncwarp();
        next.advance(s);
    }

    // acc (+)= a stage, for half of this warpgroup's columns: the small products first.
    template <bool FIRST>
    __device__ __forceinline__ void multiply_half(float (&acc)[BM / 2], int half) {
        constexpr int LOW = ROW_BYTES / 2 / 16;  // of a descriptor: where low parts begin
        const unsigned address = slots_address + slot * STAGE_BYTES;
        const unsigned long long a = descriptor(address);
        const unsigned long long b =
            descriptor(address + A_BYTES + (warpgroup * (BN / 2) + half * 64) * ROW_BYTES);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        wgmma<!FIRST>(acc, b + LOW, a);
        wgmma<true>(acc, b, a + LOW);
        wgmma<true>(acc, b + LOW + 2, a + 2);
        wgmma<true>(acc, b + 2, a + LOW + 2);
        wgmma<true>(acc, b, a);
        wgmma<true>(acc, b + 2, a + 2);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    __device__ __forceinline__ void pass() {
        previous = slot;
        if (++slot < STAGES) return;
        slot = 0;
        parity ^= 1;
    }

    // acc (+)= a stage.
    template <bool FIRST>
    __device__ __forceinline__ void multiply_stage(float (&acc)[2][BM / 2]) {
        barrier_wait(&c.full[slot], parity);
        multiply_half<FIRST>(acc[0], 0);
        multiply_half<FIRST>(acc[1], 1);
    }

    // acc += the next `steps` stages.
    __device__ __forceinline__ void multiply(float (&acc)[2][BM / 2], unsigned steps) {
#pragma unroll 1
        for (unsigned step = 0; step < steps; ++step) {
            multiply_stage<false>(acc);
            release<2>(previous);
            pass();
        }
    }

    // The last stage of a piece and the first of the next. Between them `finish` takes what is in
    // each half of acc, while the tensor cores are at the other half.
    template <class Finish>
    __device__ __forceinline__ void turn(float (&acc)[2][BM / 2], Finish finish) {
        multiply_stage<false>(acc);
        release<2>(previous);
        pass();
        wgmma_wait<1>();
        finish(0);
        barrier_wait(&c.full[slot], parity);
        multiply_half<true>(acc[0], 0);
        release<1>(previous);
        finish(1);
        multiply_half<true>(acc[1], 1);
        pass();
    }
};

__device__ __forceinline__ void add_to(float* sums, float4 v) {
    sums[0] += v.x, sums[1] += v.y, sums[2] += v.z, sums[3] += v.w;
}

// Four sums, which are zero afterwards.
__device__ __forceinline__ float4 taken(float* sums) {
    const float4 v = {sums[0], sums[1], sums[2], sums[3]};
    sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
    return v;
}

// Write half of a thread's elements of a tile: value(i) are those of rows 8 i, 8 i + 1 and columns
// 0, 8 from `row`, `column`.
template <class Value>
__device__ __forceinline__ void store_half(float* C, const Shape& s, int row, int column,
                                           Value value) {
    const size_t row_step = s.K, group_step = (size_t)7 * s.K;
    const int height = column < s.K ? s.M - row : 0;
    const int height_right = column + 8 < s.K ? s.M - row : 0;
    float* p = C + (size_t)row * s.K + column;
#pragma unroll
    for (int i = 0; i < BM / 8; ++i, p += group_step) {
        const float4 v = value(i);
        if (8 * i < height) __stcs(p, v.x);
        if (8 * i < height_right) __stcs(p + 8, v.z);
        p += row_step;
        if (8 * i + 1 < height) __stcs(p, v.y);
        if (8 * i + 1 < height_right) __stcs(p + 8, v.w);
    }
}

__device__ __forceinline__ void multiply_tiles(float* C, const Shape& s, unsigned block, int thread,
                                               Control& c, unsigned char* slots) {
    const int warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
    Ring ring = {s, c, slots, shared_address(slots), lane, warpgroup, {}, 0, 0, 0};
    Piece piece;
    piece.begin(block, s);
    ring.next.piece = piece;
    ring.next.step = 0;
    ring.next.parity = 0;
#pragma unroll 1
    for (int i = 0; i < STAGES; ++i, ring.next.advance(s))
        if (thread == 0) load_stage(ring.next, source_of(ring.next, s), c, s, slots, i);

    // A thread's sums: of its left columns in registers, of those 64 further right in shared
    // memory.
    float sum[BM / 2];
    float4* sum_right = reinterpret_cast<float4*>(slots + STAGES * STAGE_BYTES) + thread;
#pragma unroll
    for (int i = 0; i < BM / 2; ++i) sum[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < BM / 8; ++i) sum_right[i * THREADS] = {0.0f, 0.0f, 0.0f, 0.0f};
    const int own_row = lane % 4 * 2;
    const int own_column = warpgroup * (BN / 2) + warp * 16 + lane / 4;
    float acc[2][BM / 2];
    unsigned parity = 1;
    // Take half of what the piece before this one has left in the accumulators.
    auto finish = [&](int h) {
        const float* columns = c.column_factors[parity] + own_column + 64 * h;
        const float* rows = c.row_factors[parity] + own_row;
        const float left = columns[0], right = columns[8];
        float(&v)[BM / 2] = acc[h];
        // Four of its sums, scaled: rows 8 i, 8 i + 1, columns 0, 8.
        auto promoted = [&](int i) {
            const float2 f = *reinterpret_cast<const float2*>(rows + 8 * i);
#pragma unroll
            for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(v[4 * i + e])::"memory");
            return make_float4(v[4 * i] * left * f.x, v[4 * i + 1] * left * f.y,
                               v[4 * i + 2] * right * f.x, v[4 * i + 3] * right * f.y);
        };
        if (piece.chunk > 0) {
#pragma unroll
            for (int i = 0; i < BM / 8; ++i) {
                if (h == 0) {
                    add_to(&sum[4 * i], promoted(i));
                } else {
                    float4 right = sum_right[i * THREADS];
                    add_to(&right.x, promoted(i));
                    sum_right[i * THREADS] = right;
                }
            }
            return;
        }
        const Tile tile = tile_of(piece.index - s.workers, s);
        store_half(C, s, tile.row * BM + own_row, tile.column * BN + own_column + 64 * h,
                   [&](int i) {
                       if (h == 0) {
                           add_to(&sum[4 * i], promoted(i));
                           return taken(&sum[4 * i]);
                       }
                       float4 v = promoted(i);
                       if (s.chunks > PROMOTE) {
                           add_to(&v.x, sum_right[i * THREADS]);
                           sum_right[i * THREADS] = {0.0f, 0.0f, 0.0f, 0.0f};
                       }
                       return v;
                   });
    };
    if (piece.index >= s.tiles) return;
    ring.multiply_stage<true>(acc);
    ring.pass();
#pragma unroll 1
    for (;;) {
        ring.multiply(acc, CHUNK_STAGES * piece.count - 2);
        piece.advance(s);
        parity ^= 1;
        if (piece.index >= s.tiles) break;
        ring.turn(acc, finish);
    }
    ring.multiply_stage<false>(acc);
    wgmma_wait<0>();
    finish(0);
    finish(1);
}

// ---- what is small, too large for the pool, or beyond the range of factors: plain FP32 -----------

constexpr int FP32_DEPTH = 32;

// BM x PART_COLUMNS of C. Eight lanes share a row, four columns each; 32 rows at a time.
__device__ __forceinline__ void fp32_tile(const float* A, const float* B, float* C, const Shape& s,
                                          int row0, int column0, int thread,
                                          unsigned char* shared) {
    constexpr int STRIDE = FP32_DEPTH + 4;  // four rows in different banks
    constexpr int TM = (BM + 31) / 32, LOADS_A = BM / WARPS, LOADS_B = FP32_DEPTH / WARPS;
    float(*As)[STRIDE] = reinterpret_cast<float(*)[STRIDE]>(shared);
    float(*Bs)[PART_COLUMNS] =
        reinterpret_cast<float(*)[PART_COLUMNS]>(shared + 32 * TM * STRIDE * sizeof(float));
    const int warp = thread / 32, lane = thread % 32;
    const int height = min(BM, s.M - row0), row = thread / 8, column = thread % 8 * 4;
    const int passes = (height + 31) / 32;
    const size_t a_step = (size_t)WARPS * s.N, b_step = (size_t)WARPS * s.K,
                 c_step = (size_t)32 * s.K;
    float sum[TM][4] = {}, a_next[LOADS_A], b_next[LOADS_B];
    for (int k0 = 0; k0 < s.N + FP32_DEPTH; k0 += FP32_DEPTH) {
        if (k0 < s.N) {  // this piece to registers, while the one before is multiplied
            const int rows = k0 + lane < s.N ? height - warp : 0;
            const float* a = A + (size_t)(row0 + warp) * s.N + k0 + lane;
#pragma unroll
            for (int i = 0; i < LOADS_A; ++i, a += a_step) {
                a_next[i] = 0.0f;
                if (WARPS * i < rows) a_next[i] = *a;
            }
            const int depth = column0 + lane < s.K ? s.N - k0 - warp : 0;
            const float* b = B + (size_t)(k0 + warp) * s.K + column0 + lane;
#pragma unroll
            for (int i = 0; i < LOADS_B; ++i, b += b_step) {
                b_next[i] = 0.0f;
                if (WARPS * i < depth) b_next[i] = *b;
            }
        }
        if (k0 > 0) {
#pragma unroll 1
            for (int k = 0; k < FP32_DEPTH; k += 4) {
                float4 b[4];
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    b[j] = *reinterpret_cast<const float4*>(&Bs[k + j][column]);
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    if (i >= passes) break;
                    const float4 a =
                        *reinterpret_cast<const float4*>(&As[min(row + 32 * i, BM - 1)][k]);
                    const float a_k[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        sum[i][0] += a_k[j] * b[j].x;
                        sum[i][1] += a_k[j] * b[j].y;
                        sum[i][2] += a_k[j] * b[j].z;
                        sum[i][3] += a_k[j] * b[j].w;
                    }
                }
            }
            __syncthreads();
        }
        if (k0 < s.N) {
#pragma unroll
            for (int i = 0; i < LOADS_A; ++i) As[warp + WARPS * i][lane] = a_next[i];
#pragma unroll
            for (int i = 0; i < LOADS_B; ++i) Bs[warp + WARPS * i][lane] = b_next[i];
            __syncthreads();
        }
    }
    float* to = C + (size_t)(row0 + row) * s.K + column0 + column;
    const int columns = s.K - column0 - column;
    const bool whole = s.K % 4 == 0 && (size_t)C % 16 == 0;
#pragma unroll
    for (int i = 0; i < TM; ++i, to += c_step) {
        if (32 * i >= height - row || columns <= 0) break;
        if (whole) {
            __stcs(reinterpret_cast<float4*>(to),
                   make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]));
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (j < columns) to[j] = sum[i][j];
        }
    }
}

// ---- the kernel -------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ unsigned char shared[];
    unsigned char* slots = shared + (1024 - shared_address(shared) % 1024) % 1024;
    Control& control = *reinterpret_cast<Control*>(slots + STAGES * STAGE_BYTES + SUM_BYTES);
    const int thread = threadIdx.y * 16 + threadIdx.x;

    Shape s = {M, N, K};
    s.row_tiles = (M + BM - 1) / BM;
    s.column_tiles = (K + BN - 1) / BN;
    s.tiles = s.row_tiles * s.column_tiles;
    s.chunks = (N + DEPTH - 1) / DEPTH;
    s.segments = (s.chunks + SEGMENT - 1) / SEGMENT;
    s.strips = (K + STRIP - 1) / STRIP;

    // As many blocks as there are multiprocessors do all the work; each fills one. Plain FP32 takes
    // all.
    const long long needed =
        (long long)s.chunks * CHUNK_STAGES *
        ((long long)s.row_tiles * A_BYTES + (long long)s.column_tiles * B_BYTES);
    const bool plain = needed > POOL_BYTES || (long long)M * N * K <= SMALL;
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    s.workers = plain ? blocks : min(multiprocessors(), blocks);
    if (block >= s.workers) return;
    const unsigned long long epoch = launch_epoch();
    bool extreme = false;
    if (!plain) {
        if (thread == 0) {
            for (int i = 0; i < STAGES; ++i) {
                barrier_init(&control.full[i], 1);
                control.released[i] = 0;
            }
            for (int i = 0; i < WARPS * ROW_SLOTS; ++i) barrier_init(&control.arrived[0][i], 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            atomicMax(&strip_tickets, epoch);
            atomicMax(&row_tickets, epoch);
            atomicMax(&units_done, epoch);
            atomicMax(&blocks_done, epoch);
            control.ticket[0] = take(&strip_tickets);
        }
        __syncthreads();
        split_matrices(A, B, s, epoch, thread, control, slots);
        wait_for(&units_done, epoch + s.strips + M, thread);
        extreme = *(volatile unsigned long long*)&extreme_range == epoch;
    }
    if (plain || extreme) {
        const unsigned across = (K + PART_COLUMNS - 1) / PART_COLUMNS;
        for (unsigned part = block; part < s.row_tiles * across; part += s.workers)
            fp32_tile(A, B, C, s, part / across * BM, part % across * PART_COLUMNS, thread, slots);
        if (plain) return;
    } else {
        multiply_tiles(C, s, block, thread, control, slots);
    }

    // The last block leaves the counters as a fresh module has them: a replayed graph repeats its
    // epoch.
    __syncthreads();
    if (thread == 0) {
        __threadfence();
        control.ticket[0] = atomicAdd(&blocks_done, 1ull) == epoch + s.workers - 1;
    }
    __syncthreads();
    if (control.ticket[0] == 0) return;
    if (thread == 0) {
        strip_tickets = 0;
        row_tickets = 0;
        units_done = 0;
        extreme_range = 0;
        blocks_done = 0;
    }
}
