// FP32 accuracy on every input, from three FP16 products of scaled values.
// solve: tile=4096x4 shared_memory=232192
//
// Idea. A scaled value x is split into h_x and l_x in FP16, which keeps 22 of 24 bits (Markidis and
// others, 2018; Ootomo and Yokota, 2022). Then
//     x y  =  l_x h_y + h_x l_y + h_x h_y  +  l_x l_y.
// The last term is at most 2^-22 of the product and is omitted. BF16 (33) keeps 16 bits at the same
// speed. FP16 has less range, so 1024 neighbours in a row of A or a column of B share a power of
// two. It scales the largest of them to 2^12 .. 2^13. Scaling by powers of two is exact, and so are
// products of integers of up to 11 bits.
//
// Inputs. The bound below holds for every finite input (grade A). Outliers and rows of different size
// cost no time. If the largest of 1024 neighbours is outside 2^-80 .. 2^62, the product of two inverse
// scales could leave the range of a float. Then the launch removes the scales one after the other
// where needed: 4.6 to 4.7 x cuBLAS instead of 4.8, measured outside the judge on an H200.
// Plain FP32 is used for matrices with infinities, for small problems, and for matrices that do not
// fit the pool.
//
//     Phase one splits A and B into the pool, in the layout that wgmma reads.
//       stage:  144 rows of A and 256 columns of B, 32 elements of each, swizzled
//               | high parts, 64 bytes | low parts, 64 bytes |
//       Four stages are a chunk. Eight chunks share a scale, four share an accumulator.
//     All blocks wait until units_done has counted all rows of A and all strips of B.
//     Phase two: a block multiplies tiles of 144 x 256. Each of its two warpgroups has 128 columns.
//       per stage:   l h   h l   l h   h l   h h   h h     (elements 0-15 and 16-31, small first)
//       copies of a stage --- mbarrier full[slot] ---> all eight warps multiply it
//       all eight warps --- counter released[slot] ---> the last of them refills the slot
//
// Counters, barriers, copies and the order of tiles are those of 33.
// There is no producer warp. A warpgroup promotes one half of its columns while the tensor cores
// multiply the other half.
//
// Error bound for every finite input without overflow. u is 2^-24, |A||B| the product of the matrices
// of magnitudes. m_A and m_B are the largest magnitudes among the 1024 neighbours of an element.
//     |fl(C) - C|  <=  (2 min(N, 512) + N / 512 + 13) u |A||B|  +  2^-36 (m_A |B| + |A| m_B)
//                      +  N 2^-149
//   Splitting: |x - h| <= 2^-11 |x|, and |x - h - l| <= 2^-22 |x| + 2^-37 m, since FP16 has no more
//   digits below 2^-14 (Dekker, 1971; Markidis and others, 2018). The remainders of x and of y, and
//   l_x l_y, are 2^-22 of the product each: 12 u in all.
//   Tensor cores: a wgmma adds 16 exact products to its accumulator at once. Each of the 17 terms
//   is truncated 2^-25 below the largest, and the sum to 24 bits (Fasi, Higham, Mikaitis and
//   Pranesh, 2021). That is 10.5 u of the accumulator, six times per stage, 96 times between two
//   promotions: less than 2 u for each of up to 512 products.
//   Promotions: N / 512 sums in float32. Plain FP32 promotes as often, so it has the same bound.
//   Underflow: a result below the normal range is rounded to a multiple of 2^-149.
// A float32 sum of N products has the bound N u |A||B| (Higham, 2002). So the bound above is that
// of a float32 sum of about 1100 products, for any N. Errors of random inputs average out: 2e-6 by
// the accuracy rule, as for cuBLAS, and 3.5e-6 if all products have one sign.
// tests/test_error_bounds.py checks the bound on adversarial inputs.
//
// Blocks take rows and strips from work counters. A block waits only for units that running blocks
// have taken, and splitting never waits. So no scheduling order of the blocks can deadlock.
// Counters contain the number of the launch. Two launches must not overlap. A block without work
// costs 5 ns, so the declared tile of 4096 x 4 limits the grid to 2048 blocks at the ranked size.
//
// Expected gain over 33: none in time; eight times its accuracy.
// In the judge, on an H200: 4.740 x cuBLAS (95 %: 4.733 to 4.743), 1.722 ms, 0.98 x the speed of
// 33; 252 registers, 232192 B of shared memory, 1 block a multiprocessor.
// reports/h200/34_wgmma_fp16_scaled.json has the rest.
constexpr int BM = 144;         // rows of C in a tile: wgmma's N
constexpr int BN = 256;         // columns of C in a tile: twice wgmma's M for each warpgroup
constexpr int DEPTH = 128;      // elements of a chunk along N: four stages
constexpr int SEGMENT = 8;      // chunks that share a scale
constexpr int ROW_BYTES = 128;  // a row of a stage: STEP high parts, then STEP low parts
constexpr int STEP = 32;        // elements of a stage along N
constexpr int CHUNK_STAGES = DEPTH / STEP;
constexpr int PROMOTE = 4;  // chunks between two promotions
constexpr int STAGES = 3;
constexpr unsigned RASTER = 6;    // tile columns that tiles of neighbouring blocks share
constexpr int PART_COLUMNS = 32;  // plain FP32 computes parts of BM x PART_COLUMNS
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int B_BYTES = BN * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int WARPS = 8;
constexpr int ROW_SLOTS = 2;  // segments of rows of A that a warp has in flight
constexpr long long POOL_BYTES = 544ll << 20;

// The split matrices, by tile and stage: A first, then B. A stage has the layout that wgmma reads.
__device__ __align__(1024) unsigned char pool[POOL_BYTES];
// Inverse scales, by tile, segment, and row or column of the tile.
__device__ __align__(16) float factors_a[POOL_BYTES / (CHUNK_STAGES * ROW_BYTES)];
__device__ __align__(16) float factors_b[POOL_BYTES / (CHUNK_STAGES * ROW_BYTES)];

// Launch-wide counters: the epoch of the launch in the high 40 bits, a count in the low 24.
__device__ unsigned long long strip_tickets;
__device__ unsigned long long row_tickets;
__device__ unsigned long long units_done;
__device__ unsigned long long blocks_done;
__device__ unsigned long long widest_range;  // the epoch, and the largest Range of a segment
constexpr int COUNT_BITS = 24;

struct Shape {
    int M, N, K;
    unsigned row_tiles, column_tiles, tiles;
    unsigned chunks, segments;  // along N
    unsigned strips;            // of B: segments of STRIP columns
    unsigned workers;           // blocks that share all work; the others exit
};

struct Control {
    alignas(16) float row_factors[2][BM];  // inverse scales, for even and odd pieces
    alignas(16) float column_factors[2][BN];
    unsigned long long full[STAGES];  // mbarriers: the copies into a slot are complete
    unsigned released[STAGES];        // warps that have released a slot, modulo WARPS
    unsigned ticket[2];
    unsigned long long arrived[WARPS][ROW_SLOTS];  // mbarriers: the copy of a segment is complete
};

constexpr int THREADS = WARPS * 32;
constexpr int SUM_BYTES = THREADS * BM / 2 * (int)sizeof(float);  // half of the sums of a tile

static_assert(1024 + STAGES * STAGE_BYTES + SUM_BYTES + sizeof(Control) <= 232192,
              "shared memory of the launch line");

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// ---- launch-wide counters ---------------------------------------------------------------------

// Returns a number that grew with every launch on an H100 and an H200, so counters of an aborted
// launch count as old. PTX does not promise that %gridid grows.
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

// Returns a wgmma descriptor: K-major, 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Returns the offset of 16 bytes of a row in a stage, in the 128-byte swizzle of wgmma.
__device__ __forceinline__ int place(int row, int segment) {
    return row * ROW_BYTES + (segment ^ row % 8) * 16;
}

constexpr long long SMALL = 8'000'000;  // most multiply-adds for which plain FP32 is faster

// ---- phase one: x = high + low, both FP16, scaled -----------------------------------------------

// The largest magnitude of a segment. With EXTREME ones, the product of two inverse scales may leave
// the range of a float.
enum Range : unsigned { USUAL, EXTREME, NOT_FINITE };

// A power of two that scales the largest magnitude to 2^12 .. 2^13, and its inverse. Magnitudes
// below 2^-115 are scaled by 2^127, which makes them multiples of 2^-22.
struct Scale {
    float scale, factor;
    unsigned range;
};

__device__ __forceinline__ Scale scale_for(unsigned largest) {
    const int exponent = largest >> 23;
    if (largest == 0) return {1.0f, 1.0f, USUAL};
    const bool usual = exponent >= 127 - 80 && exponent <= 127 + 62;
    return {__uint_as_float(min(266 - exponent, 254) << 23),
            __uint_as_float(exponent > 12 ? (exponent - 12) << 23 : 1 << 22),
            usual             ? USUAL
            : exponent == 255 ? NOT_FINITE
                              : EXTREME};
}

// Returns the largest magnitude of four values as bits, which integer maxima can compare.
__device__ __forceinline__ unsigned magnitude(float4 v) {
    return __float_as_uint(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
}

// Four scaled values: the FP16 roundings and the remainders in FP16.
struct Parts {
    uint2 high, low;
};

// Splits two floats into two packed pairs of FP16: the rounded values and the rounded remainders.
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

// A warp's ring of segments of rows of A in shared memory. The warp takes rows from a work counter
// and keeps ROW_SLOTS bulk copies in flight while it splits.
struct RowRing {
    const float* A;
    const Shape& s;
    unsigned char* slots;
    unsigned long long* arrived;
    int lane;
    bool aligned;           // rows start at multiples of 16 bytes; otherwise nothing is copied
    unsigned row, segment;  // the next segment to copy
    unsigned ahead;         // the row after that; valid in lane 0
    unsigned held;          // in lane i: the row of slot i

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

// A segment of a row of A in a warp's registers. Each lane has four consecutive elements per chunk.
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

// Splits the rows of A that this warp takes, and returns their number.
__device__ __forceinline__ unsigned split_rows(RowRing& ring, unsigned long long epoch) {
    const Shape& s = ring.s;
    const int lane = ring.lane;
    unsigned range = USUAL, segment = 0, done = 0, slot = 0, parity = 0;
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
        __syncwarp();  // all lanes have read the slot
        ring.load(slot);
        range = max(range, chosen.range);
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
    if (range != USUAL && lane == 0) atomicMax(&widest_range, epoch + range);
    return done;
}

constexpr int STRIP = 32;  // columns of a strip: a segment of them, one chunk per warp
constexpr int STRIP_BYTES = STRIP * ROW_BYTES;  // a strip's share of a stage
static_assert(SEGMENT == WARPS, "each warp has a chunk of the segment");

// Shared memory in which a block assembles a strip, and exchanges maxima of columns.
struct StripBuffer {
    unsigned char stages[WARPS][CHUNK_STAGES][STRIP_BYTES];
    unsigned largest[WARPS][STRIP];
};
static_assert(sizeof(StripBuffer) + WARPS * ROW_SLOTS * ROW_SLOT <=
                  STAGES * STAGE_BYTES + SUM_BYTES,
              "the first phase uses the slots, and what is for sums");

// Where a warp reads its chunk of a strip: the next element of each lane's column.
struct ColumnSource {
    const float* p;
    size_t step;
    int rows;  // elements that are left, up to the end of the column

    __device__ __forceinline__ ColumnSource(const float* B, const Shape& s, unsigned strip,
                                            int warp, int lane) {
        const int column = strip / s.segments * STRIP + lane;
        const int k = (strip % s.segments * SEGMENT + warp) * DEPTH;
        p = B + (size_t)k * s.K + column;
        step = s.K;
        rows = column < s.K ? s.N - k : 0;
    }

    __device__ __forceinline__ float4 four(int first) {
        float v[4];
#pragma unroll
        for (int e = 0; e < 4; ++e, p += step) {
            v[e] = 0.0f;
            if (first + e < rows) v[e] = *p;
        }
        return {v[0], v[1], v[2], v[3]};
    }
};

__device__ __forceinline__ unsigned char* pool_b(const Shape& s) {
    return pool + (size_t)s.row_tiles * s.chunks * (CHUNK_STAGES * A_BYTES);
}

// Splits the strips of B that this block takes, and returns their number. Each register is refilled
// with a value of the next strip after its value is split.
__device__ __forceinline__ unsigned split_strips(const float* B, const Shape& s,
                                                 unsigned long long epoch, int thread, Control& c,
                                                 StripBuffer& buffer) {
    const int warp = thread / 32, lane = thread % 32;
    unsigned strip = c.ticket[0], done = 0;
    if (strip >= s.strips) return 0;
    float4 v[DEPTH / 4];  // the warp's chunk; each lane has all elements of one column
    ColumnSource source(B, s, strip, warp, lane);
#pragma unroll
    for (int i = 0; i < DEPTH / 4; ++i) v[i] = source.four(4 * i);
    unsigned range = USUAL;
    unsigned char(*stages)[STRIP_BYTES] = buffer.stages[warp];
#pragma unroll 1
    for (; strip < s.strips; ++done) {
        const unsigned column = strip / s.segments * STRIP, segment = strip % s.segments;
        const unsigned tile = column / BN, tile_column = column % BN;
        unsigned largest = 0;
#pragma unroll
        for (int i = 0; i < DEPTH / 4; ++i) largest = max(largest, magnitude(v[i]));
        buffer.largest[warp][lane] = largest;
        // Taken as late as this, so that every block gets a first strip before any gets a second.
        if (thread == 0) c.ticket[1] = take(&strip_tickets);
        // The bulk stores of the previous strip must have read the buffer.
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncthreads();
#pragma unroll
        for (int i = 0; i < WARPS; ++i) largest = max(largest, buffer.largest[i][lane]);
        const unsigned next = c.ticket[1];
        source = ColumnSource(B, s, next, warp, lane);
        const Scale chosen = scale_for(largest);
        range = max(range, chosen.range);
#pragma unroll
        for (int i = 0; i < DEPTH / 16; ++i) {
            Parts p[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) p[e] = split(scaled(v[4 * i + e], chosen.scale));
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
            for (int e = 0; e < 4; ++e) v[4 * i + e] = source.four(16 * i + 4 * e);
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
        __syncthreads();  // all have read the next strip's number
        strip = next;
    }
    if (range != USUAL) atomicMax(&widest_range, epoch + range);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    return done;
}

// Phase one for one block: strips of B, then rows of A, whose first segments arrive meanwhile.
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
    // Other blocks will read the pool by bulk copies (async proxy), after acquiring the counter.
    async_proxy_fence();
    __threadfence();
    __syncthreads();
    if (thread % 32 == 0)
        atomicAdd(&units_done, (unsigned long long)rows + (thread == 0 ? strips : 0));
}

// Waits until a counter reaches `count`. Running blocks have taken all units, so this ends. The
// fence orders the bulk copies that follow (async proxy) after the acquire.
__device__ __forceinline__ void wait_for(const unsigned long long* counter,
                                         unsigned long long count, int thread) {
    if (thread == 0)
        while (load_acquire(counter) < count) {}
    __syncthreads();
    async_proxy_fence();
}

// ---- phase two: C = low·high + high·low + high·high ---------------------------------------------

// acc (+)= A·B for a 64 x 144 x 16 step in FP16.
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

// Returns the tile with a given index. Consecutive indices fill bands of RASTER tile columns row by
// row, so that the operands of concurrent tiles fit the L2 cache.
__device__ __forceinline__ Tile tile_of(unsigned index, const Shape& s) {
    const unsigned per_raster = RASTER * s.row_tiles;
    const unsigned raster = index / per_raster, rest = index % per_raster;
    const unsigned width = min(RASTER, s.column_tiles - min(raster * RASTER, s.column_tiles - 1));
    return {rest / width, raster * RASTER + rest % width};
}

// The work of a block between two promotions: PROMOTE chunks of a tile.
struct Piece {
    unsigned index;         // number of the tile
    unsigned chunk, count;  // first chunk of the piece, and number of chunks
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

// The next stage to copy. Each warp advances a copy of its own, since any warp may start the copy.
struct Cursor {
    Piece piece;
    unsigned step, parity;  // stage within the piece; 0 for even pieces, 1 for odd ones

    __device__ __forceinline__ void advance(const Shape& s) {
        if (++step < CHUNK_STAGES * piece.count) return;
        step = 0;
        parity ^= 1;
        piece.advance(s);
    }
};

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

// Starts the copy of a stage into a slot, and of a piece's inverse scales with its last stage. One
// thread calls it.
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

// The pipeline of a block: STAGES slots in shared memory. `slot` is multiplied next; `previous` is
// the slot multiplied before it; `parity` is the mbarrier phase of `slot`.
struct Ring {
    const Shape& s;
    Control& c;
    unsigned char* slots;
    unsigned slots_address;
    int lane, warpgroup;
    Cursor next;
    int slot, previous;
    unsigned parity;

    // Waits until at most PENDING groups of wgmma are incomplete, then releases slot `used`. The
    // last of the eight warps to release it starts its refill, so no warp waits for a free slot.
    // The atomic's release and acquire order all reads of the slot before the refill. It is an
    // increment, because the compiler would first add up additions of a warp. The source address is
    // computed before the wait, to shorten the time between release and refill.
    template <int PENDING>
    __device__ __forceinline__ void release(int used) {
        const Source from = source_of(next, s);
        asm volatile("" ::"l"(from.rows), "l"(from.columns) : "memory");
        wgmma_wait<PENDING>();
        if (lane == 0) {
            unsigned before;
            asm volatile("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], %2;"
                         : "=r"(before)
                         : "r"(shared_address(&c.released[used])), "n"(WARPS - 1)
                         : "memory");
            if (before == WARPS - 1) load_stage(next, from, c, s, slots, used);
        }
        __syncwarp();
        next.advance(s);
    }

    // acc (+)= the stage in `slot`, for one half of this warpgroup's columns, small products first.
    template <bool FIRST>
    __device__ __forceinline__ void multiply_half(float (&acc)[BM / 2], int half) {
        constexpr int LOW = ROW_BYTES / 2 / 16;  // descriptor units (16 bytes) to the low parts
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

    // acc = the first stage, for all columns of this warpgroup.
    __device__ __forceinline__ void multiply_first(float (&acc)[2][BM / 2]) {
        barrier_wait(&c.full[slot], parity);
        multiply_half<true>(acc[0], 0);
        multiply_half<true>(acc[1], 1);
        pass();
    }

    // acc += the stage in `slot`. The slot before it is released as soon as half of the products
    // are issued, since issuing them takes as long as multiplying those of the other warpgroup.
    __device__ __forceinline__ void multiply_stage(float (&acc)[2][BM / 2]) {
        barrier_wait(&c.full[slot], parity);
        multiply_half<false>(acc[0], 0);
        release<1>(previous);
        multiply_half<false>(acc[1], 1);
        pass();
    }

    __device__ __forceinline__ void multiply(float (&acc)[2][BM / 2], unsigned steps) {
#pragma unroll 1
        for (unsigned step = 0; step < steps; ++step) multiply_stage(acc);
    }

    // Multiplies the last stage of a piece and the first stage of the next. Between them, finish(h)
    // processes half h of acc while the tensor cores work on the other half.
    template <class Finish>
    __device__ __forceinline__ void turn(float (&acc)[2][BM / 2], Finish finish) {
        multiply_stage(acc);
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

// Returns four sums and clears them.
__device__ __forceinline__ float4 taken(float* sums) {
    const float4 v = {sums[0], sums[1], sums[2], sums[3]};
    sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
    return v;
}

// Stores half of a thread's elements of a tile. value(i) returns those of rows 8 i and 8 i + 1 and
// of columns 0 and 8, relative to `row` and `column`.
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

// Returns a sum without the scales of its row and column. ANY: for any scales. Their product is exact
// within the range of a float. Otherwise both are large or both are small.
template <bool ANY>
__device__ __forceinline__ float unscaled(float sum, float column, float row) {
    const float both = column * row;
    if (ANY && both > 0.0f && both < __uint_as_float(0xff << 23)) return sum * both;
    return sum * column * row;
}

template <bool ANY>
__device__ __forceinline__ void multiply_tiles(float* C, const Shape& s, unsigned block, int thread,
                                               Control& c, unsigned char* slots) {
    // The shuffle tells the compiler that a warp has one warpgroup, so descriptors are uniform.
    const int warpgroup = __shfl_sync(0xffffffffu, thread / 128, 0);
    const int warp = thread / 32 % 4, lane = thread % 32;
    Ring ring = {s, c, slots, shared_address(slots), lane, warpgroup, {}, 0, 0, 0};
    Piece piece;
    piece.begin(block, s);
    ring.next.piece = piece;
    ring.next.step = 0;
    ring.next.parity = 0;
#pragma unroll 1
    for (int i = 0; i < STAGES; ++i, ring.next.advance(s))
        if (thread == 0) load_stage(ring.next, source_of(ring.next, s), c, s, slots, i);

    // A thread's promoted sums: left columns in registers, those 64 further right in shared memory.
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
    // Promotes half h of the previous piece's accumulators. Stores C after a tile's last piece.
    auto finish = [&](int h) {
        const float* columns = c.column_factors[parity] + own_column + 64 * h;
        const float* rows = c.row_factors[parity] + own_row;
        const float left = columns[0], right = columns[8];
        float(&v)[BM / 2] = acc[h];
        // Returns four accumulators with their scales removed: rows 8 i, 8 i + 1, columns 0, 8.
        // The empty asm keeps the compiler from moving reads of accumulators before the wait.
        auto promoted = [&](int i) {
            const float2 f = *reinterpret_cast<const float2*>(rows + 8 * i);
#pragma unroll
            for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(v[4 * i + e])::"memory");
            return make_float4(
                unscaled<ANY>(v[4 * i], left, f.x), unscaled<ANY>(v[4 * i + 1], left, f.y),
                unscaled<ANY>(v[4 * i + 2], right, f.x), unscaled<ANY>(v[4 * i + 3], right, f.y));
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
    ring.multiply_first(acc);
#pragma unroll 1
    for (;;) {
        ring.multiply(acc, CHUNK_STAGES * piece.count - 2);
        piece.advance(s);
        parity ^= 1;
        if (piece.index >= s.tiles) break;
        ring.turn(acc, finish);
    }
    ring.multiply_stage(acc);
    wgmma_wait<0>();
    finish(0);
    finish(1);
}

// ---- small problems, matrices too large for the pool, infinities: plain FP32 --------------------

constexpr int FP32_DEPTH = 32;

// Computes BM x PART_COLUMNS of C, 32 rows at a time. Eight lanes share a row, four columns each.
__device__ __forceinline__ void fp32_tile(const float* A, const float* B, float* C, const Shape& s,
                                          int row0, int column0, int thread,
                                          unsigned char* shared) {
    constexpr int STRIDE = FP32_DEPTH + 4;  // a warp's four rows start in different banks
    constexpr int TM = (BM + 31) / 32, LOADS_A = BM / WARPS, LOADS_B = FP32_DEPTH / WARPS;
    float(*As)[STRIDE] = reinterpret_cast<float(*)[STRIDE]>(shared);
    float(*Bs)[PART_COLUMNS] =
        reinterpret_cast<float(*)[PART_COLUMNS]>(shared + 32 * TM * STRIDE * sizeof(float));
    const int warp = thread / 32, lane = thread % 32;
    const int height = min(BM, s.M - row0), row = thread / 8, column = thread % 8 * 4;
    const int passes = (height + 31) / 32;
    const size_t a_step = (size_t)WARPS * s.N, b_step = (size_t)WARPS * s.K,
                 c_step = (size_t)32 * s.K;
    float sum[TM][4] = {}, total[TM][4] = {}, a_next[LOADS_A], b_next[LOADS_B];
    for (int k0 = 0; k0 < s.N + FP32_DEPTH; k0 += FP32_DEPTH) {
        if (k0 < s.N) {  // load the next piece while this one is multiplied
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
            if (k0 % (PROMOTE * DEPTH) == 0 || k0 >= s.N) {
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        total[i][j] += sum[i][j];
                        sum[i][j] = 0.0f;
                    }
            }
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
                   make_float4(total[i][0], total[i][1], total[i][2], total[i][3]));
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (j < columns) to[j] = total[i][j];
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
    s.strips = (K + STRIP - 1) / STRIP * s.segments;

    // One block fills a multiprocessor, so the others exit. Only plain FP32 uses all blocks.
    const long long needed =
        (long long)s.chunks * CHUNK_STAGES *
        ((long long)s.row_tiles * A_BYTES + (long long)s.column_tiles * B_BYTES);
    const bool plain = needed > POOL_BYTES || (long long)M * N * K <= SMALL;
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    s.workers = plain ? blocks : min(multiprocessors(), blocks);
    if (block >= s.workers) return;
    const unsigned long long epoch = launch_epoch();
    unsigned range = USUAL;
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
        const unsigned long long widest = *(volatile unsigned long long*)&widest_range;
        if (widest > epoch) range = widest - epoch;
    }
    if (plain || range == NOT_FINITE) {
        const unsigned across = (K + PART_COLUMNS - 1) / PART_COLUMNS;
        for (unsigned part = block; part < s.row_tiles * across; part += s.workers)
            fp32_tile(A, B, C, s, part / across * BM, part % across * PART_COLUMNS, thread, slots);
        if (plain) return;
    } else if (range == EXTREME) {
        multiply_tiles<true>(C, s, block, thread, control, slots);
    } else {
        multiply_tiles<false>(C, s, block, thread, control, slots);
    }

    // The last block resets the counters, since launches of a replayed graph have the same epoch.
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
        widest_range = 0;
        blocks_done = 0;
    }
}
