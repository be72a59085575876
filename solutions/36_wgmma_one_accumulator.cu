// FP32 accuracy on random inputs from one FP16 and two INT8 products, summed in one accumulator.
// solve: tile=4096x4 shared_memory=232192
//
// Idea. A scaled value x is split into h_x, its FP16 rounding, and l_x = x - h_x. Then
//     x y  =  h_x h_y  +  l_x y  +  x l_y  -  l_x l_y.
// The last term is omitted. The two corrections are 2^-11 of the first product, so INT8 resolves
// them well enough. An INT8 product costs half as much as an FP16 product. One FP16 and two INT8
// products are four units of work; three FP16 products (34) are six. The INT8 sums are exact. They
// are converted to floats in place, and the FP16 products are added to the same accumulator.
//
// Inputs. All inputs are accepted, but the accuracy depends on them (grade B). A segment is 1024
// neighbours in a row of A or a column of B. One unit of an INT8 correction is 2^-18 of the largest
// value of the segment. Errors of independent elements average out. Those of structured inputs would
// add up, so low parts are rounded up or down by chance. High parts are rounded to nearest, which
// random inputs need. So errors stay where both matrices repeat few values: 1.2e-4 on neighbours that
// cancel (at small sizes 1.9e-4 in another grading), where cuBLAS has 5.9e-7. The judge's other
// structured inputs: 1.2e-5, in another grading 1.3e-5. There is no useful bound for all inputs.
// A scale is a power of two. If the largest value is far above the others, and much of INT8's range
// would remain unused, it is larger. Otherwise single rows of normal inputs may exceed the limit.
// A segment is wide if one unit is too much for its root mean square (LIMIT). Then its outliers are
// taken out, and their products are added at the end. If there are too many of them, or if the
// largest value of a segment is below 2^-115, the whole launch uses FP16 corrections. In the judge, on
// an H200: outliers, values near overflow or rows at 2^-100 6.3 to 6.4 x cuBLAS, the worst kind of inputs
// 4.65. Outside of it, FP16 corrections: 4.2 to 4.8.
// Plain FP32 is used for matrices with infinities, for N <= SHORT, and for matrices that do not fit
// the pool.
// Problems of up to SMALL multiply-adds use four BF16 products in a single phase, as in 32.
//
//     Phase one splits A and B into the pool, in the layout that wgmma reads. A line is a row of A
//     or a column of B. A unit of work is a segment of 16 lines.
//       registers  next unit, loaded        shared memory  this unit: each warp splits two lines
//       stage   144 rows of A    256 columns of B    128 bytes of each row and column
//         0     low INT8         high INT8           all 128 elements of the chunk
//         1     high INT8        low INT8            all 128 elements
//         2     FP16             FP16                elements 0 to 63
//         3     FP16             FP16                elements 64 to 127
//       Four stages are a chunk of 128 along N. A segment of eight chunks shares a scale.
//       With FP16 corrections a stage has 32 elements:  | FP16, 64 bytes | low FP16, 64 bytes |
//
//     Then each block takes the outliers out of the wide segments that it has split.
//     All blocks wait until units_done has counted all units.
//
//     Phase two: a block multiplies tiles of 144 x 256. Each of its two warpgroups has 128 columns.
//       per segment:   INT8 INT8 ... INT8 | convert to float | FP16 FP16 ... FP16 | promote
//       copies of a stage --- mbarrier full[slot] ---> all eight warps multiply it
//       all eight warps --- counter released[slot] ---> the last of them refills the slot
//
//     Phase three: a block adds the products of outliers to its tiles.
//
// Counters, barriers, copies, the order of tiles and the pipeline (`Ring`) are those of 34.
// There is no producer warp. A warpgroup converts or promotes one half of its columns while the
// tensor cores multiply the other half.
//
// Blocks take units from a work counter. A block waits only for units that running blocks have
// taken, and splitting never waits. So no scheduling order of the blocks can deadlock.
// Counters contain the number of the launch. Two launches must not overlap. A block without work
// costs 5 ns, so the declared tile of 4096 x 4 limits the grid to 2048 blocks at the ranked size.
// Tensor cores truncate sums. 64 additions to an accumulator cost up to 5.5e-6 if all terms have
// one sign. Therefore at most eight chunks share an accumulator.
//
// Expected gain over 33: four units of work instead of six, so at most 1.5 x.
// In the judge, on an H200: 6.475 x cuBLAS (95 %: 6.462 to 6.490), 1.259 ms, 1.33 x the speed of
// 33; 254 registers, 232192 B of shared memory, 1 block a multiprocessor.
// reports/h200/36_wgmma_one_accumulator.json has the rest.
constexpr int BM = 144;          // rows of C in a tile: wgmma's N
constexpr int BN = 256;          // columns of C in a tile: twice wgmma's M for each warpgroup
constexpr int DEPTH = 128;       // elements of a chunk along N: four stages
constexpr int SEGMENT = 8;       // chunks that share a scale and an accumulator
constexpr int ROW_BYTES = 128;   // a row of a stage: 128 INT8 or 64 FP16 values
constexpr int CHUNK_STAGES = 4;  // INT8 low x high, INT8 high x low, FP16 twice
constexpr int HALF_CHUNK = CHUNK_STAGES / 2;
constexpr int STAGES = 3;
constexpr unsigned RASTER = 6;  // tile columns that tiles of neighbouring blocks share
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int B_BYTES = BN * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int WARPS = 8;
constexpr int LINES = 16;  // rows of A or columns of B in a unit of phase one
constexpr long long POOL_BYTES = 544ll << 20;

// The split matrices, by tile and stage: A first, then B. A stage has the layout that wgmma reads.
__device__ __align__(1024) unsigned char pool[POOL_BYTES];
// Inverse scales, by tile, segment, and row or column of the tile.
__device__ __align__(16) float factors_a[POOL_BYTES / (CHUNK_STAGES * ROW_BYTES)];
__device__ __align__(16) float factors_b[POOL_BYTES / (CHUNK_STAGES * ROW_BYTES)];

// An element that was taken out of A or B. The outliers of a segment follow each other.
struct alignas(16) Outlier {
    unsigned line;  // row of A, or M + column of B
    unsigned k;     // position along N
    float value;
    unsigned count;  // in the first outlier of a segment: their number; 0 in the others
};
constexpr unsigned OUTLIERS = 8192;
__device__ Outlier outliers[OUTLIERS];

// Launch-wide counters: the epoch of the launch in the high 40 bits, a count in the low 24.
// Phase one has a second pass, for FP16 corrections, if outliers are too many.
constexpr int PASSES = 2;
__device__ unsigned long long tickets[PASSES];  // units of phase one that blocks have taken
__device__ unsigned long long units_done[PASSES];
__device__ unsigned long long blocks_done;
__device__ unsigned long long wide_segments;  // estimated from samples of A and B
__device__ unsigned long long outliers_taken;
__device__ unsigned long long extreme;     // epoch of the last launch with EXTREME segments
__device__ unsigned long long too_wide;    // epoch of the last launch with FP16 corrections
__device__ unsigned long long not_finite;  // epoch of the last launch that needs plain FP32
constexpr int COUNT_BITS = 24;
constexpr unsigned ENDED = 1u << 23;  // tickets of a pass that was ended are at least this

struct Shape {
    int M, N, K;
    unsigned row_tiles, column_tiles, tiles;
    unsigned chunks, segments;  // along N
    unsigned units_a, units;    // of phase one
    unsigned workers;           // blocks that share all work; the others exit
};

constexpr unsigned MAX_WIDE = 128;  // most segments of a block from which outliers are taken

struct Control {
    alignas(16) float row_factors[2][BM];  // inverse scales, for even and odd pieces
    alignas(16) float column_factors[2][BN];
    unsigned long long full[STAGES];  // mbarriers: the copies into a slot are complete
    unsigned released[STAGES];        // warps that have released a slot, modulo WARPS
    unsigned ticket[2];
    unsigned outliers;                    // of the launch
    unsigned wide_count, wide[MAX_WIDE];  // wide segments that this block has split
};

constexpr int THREADS = WARPS * 32;
constexpr int SUM_BYTES = THREADS * BM / 2 * (int)sizeof(float);  // half of the sums of a tile

static_assert(STAGES * STAGE_BYTES + SUM_BYTES + sizeof(Control) <= 232192,
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

__device__ __forceinline__ unsigned take(unsigned long long* counter,
                                         unsigned long long count = 1) {
    return (unsigned)(atomicAdd(counter, count) & ((1u << COUNT_BITS) - 1));
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

// Returns a wgmma descriptor: K-major, 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Returns the offset of 16 bytes of a row in a stage, in the 128-byte swizzle of wgmma.
__device__ __forceinline__ int place(int row, int segment) {
    return row * ROW_BYTES + (segment ^ row % 8) * 16;
}

// ---- phase one: x = FP16 + INT8, scaled ---------------------------------------------------------

// The largest magnitude of a segment. With EXTREME ones, the product of two inverse scales may leave
// the range of a float. TINY ones are below 2^-115.
enum Range : unsigned { USUAL, EXTREME, TINY, NOT_FINITE };

// A power of two that scales the largest magnitude to 2^12 .. 2^13, and its inverse. TINY magnitudes
// are scaled by 2^127, which makes them multiples of 2^-22.
struct Scale {
    float scale, factor;
    Range range;
};

__device__ __forceinline__ Scale scale_for(unsigned largest) {
    const int exponent = largest >> 23;
    if (largest == 0) return {1.0f, 1.0f, USUAL};
    const bool usual = exponent >= 127 - 80 && exponent <= 127 + 62;
    return {__uint_as_float(min(266 - exponent, 254) << 23),
            __uint_as_float(exponent > 12 ? (exponent - 12) << 23 : 1 << 22),
            usual             ? USUAL
            : exponent == 255 ? NOT_FINITE
            : exponent < 12   ? TINY
                              : EXTREME};
}

// Returns the largest magnitude of four values as bits, which integer maxima can compare.
__device__ __forceinline__ unsigned magnitude(float4 v) {
    return __float_as_uint(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
}

// Four scaled values in FP16, with the operands of the corrections. `low` has the remainders as
// INT8 in units of 2^-6; `high` has the values in units of 2^6. So the unit of low x high is 1.
// `fp16_low` has the remainders in FP16 instead.
struct Parts {
    uint2 fp16;
    unsigned low, high;
    uint2 fp16_low;
};

// Pseudo-random bytes that decide how low parts are rounded: the leading bytes of a Weyl sequence
// along N. Each segment of a line starts elsewhere, and A and B have different increments.
struct Noise {
    unsigned next, increment;

    __device__ __forceinline__ Noise(bool of_b, unsigned line, unsigned segment, int lane) {
        increment = of_b ? 0x85ebca6bu : 0x9e3779b1u;
        next = (line * 2 + of_b) * 0x2c1b3c6du + segment * 0x297a2d39u;
        next = (next ^ next >> 15) * 0x9e3779b1u;
        next = (next ^ next >> 12) + lane * 4 * increment;
    }
};

// Returns bits whose second byte is x * unit + noise / 256, rounded down, in -128 .. 127.
__device__ __forceinline__ unsigned int8_bits(float x, float unit, unsigned noise) {
    constexpr float INTEGER = 49152.0f;  // 1.5 * 2^15: the last eight bits are a fraction
    const float clamped = fminf(fmaxf(fmaf(x, unit, INTEGER), INTEGER - 128.0f), INTEGER + 127.0f);
    return __float_as_uint(clamped) + noise;
}

__device__ __forceinline__ unsigned pack(unsigned a, unsigned b, unsigned c, unsigned d) {
    return __byte_perm(__byte_perm(a, b, 0x0051), __byte_perm(c, d, 0x0051), 0x5410);
}

// Rounds two values to FP16. Ties are rounded up, so that remainders are in [-2, 2) and fit INT8 in
// units of 2^-6.
__device__ __forceinline__ unsigned to_fp16(float x, float y, float& x_low, float& y_low) {
    constexpr float ULP = 1.0f / (1 << 23);
    unsigned packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;"
        : "=r"(packed)
        : "f"(fmaf(fabsf(y), ULP, y)), "f"(fmaf(fabsf(x), ULP, x)));
    float x_high, y_high;
    asm("{\n.reg .f16 p, q;\nmov.b32 {p, q}, %2;\ncvt.f32.f16 %0, p;\ncvt.f32.f16 %1, q;\n}\n"
        : "=f"(x_high), "=f"(y_high)
        : "r"(packed));
    x_low = x - x_high;
    y_low = y - y_high;
    return packed;
}

// Splits a thread's values in the next chunk. Low parts are rounded up or down by chance, in
// proportion to the distance. Otherwise the errors of structured lines would add up.
template <bool WIDE>
__device__ __forceinline__ Parts split(float4 v, Noise& noise) {
    constexpr float LOW = 64.0f, HIGH = 1.0f / 64;
    constexpr unsigned NEAREST = 128;
    Parts p;
    float4 l;
    p.fp16.x = to_fp16(v.x, v.y, l.x, l.y);
    p.fp16.y = to_fp16(v.z, v.w, l.z, l.w);
    if constexpr (WIDE) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p.fp16_low.x) : "f"(l.y), "f"(l.x));
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p.fp16_low.y) : "f"(l.w), "f"(l.z));
        return p;
    }
    const unsigned n = noise.next, step = noise.increment;
    p.low = pack(int8_bits(l.x, LOW, n >> 24), int8_bits(l.y, LOW, n + step >> 24),
                 int8_bits(l.z, LOW, n + 2 * step >> 24), int8_bits(l.w, LOW, n + 3 * step >> 24));
    p.high = pack(int8_bits(v.x, HIGH, NEAREST), int8_bits(v.y, HIGH, NEAREST),
                  int8_bits(v.z, HIGH, NEAREST), int8_bits(v.w, HIGH, NEAREST));
    noise.next += DEPTH * step;
    return p;
}

__device__ __forceinline__ float4 scaled(float4 v, float scale) {
    return {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
}

__device__ __forceinline__ float squares_of(float4 v) {
    return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

constexpr int SEGMENT_LENGTH = SEGMENT * DEPTH;

// INT8 corrections are used if 2^13, the bound of scaled values, is at most this multiple of the root
// mean square of each segment. Beyond it, the error of INT8 would dominate.
constexpr float LIMIT = 9.0f;

// Returns whether 2^13 is more than `multiple` times the root mean square of a segment, from the sum
// of its scaled squares.
__device__ __forceinline__ bool exceeds(float multiple, float squares, unsigned segment,
                                        const Shape& s) {
    const float length = min(SEGMENT_LENGTH, s.N - (int)segment * SEGMENT_LENGTH);
    return squares > 0.0f && 8192.0f * 8192.0f * length > multiple * multiple * squares;
}

// A power of two as the scale may leave much of INT8's range unused. If that matters (STRETCH), and
// low parts need rounding, the largest magnitude is scaled to 127 units of the high part instead.
// Without rounding the power of two remains, so products of integers stay exact.
constexpr float STRETCH = 6.0f, ROOM = 5461.0f;

__device__ __forceinline__ bool needs_rounding(float y) { return rintf(y * 64) != y * 64; }

__device__ __forceinline__ Scale stretched(Scale chosen, float largest, float squares, bool rounded,
                                           unsigned segment, const Shape& s) {
    rounded = __any_sync(0xffffffffu, rounded);
    if (!rounded || chosen.range != USUAL || !exceeds(STRETCH, squares, segment, s)) return chosen;
    const float growth = 127 * 64 / (largest * chosen.scale);
    return {chosen.scale * growth, chosen.factor / growth, USUAL};
}

// Ends the first pass if outliers are too many. The second pass splits everything again, so the
// units that no block has taken count as done.
__device__ __forceinline__ void end_first_pass(const Shape& s, unsigned long long epoch) {
    atomicMax(&too_wide, epoch);
    const unsigned long long taken = atomicMax(&tickets[0], epoch + ENDED);
    if (taken < epoch + s.units) atomicAdd(&units_done[0], epoch + s.units - taken);
}

constexpr unsigned TOO_WIDE = 2048;  // estimated wide segments beyond which the first pass ends

// Counts a wide segment of a sample, which stands for `share` segments.
__device__ __forceinline__ void count_wide(unsigned share, const Shape& s,
                                           unsigned long long epoch) {
    if (take(&wide_segments, share) + share > TOO_WIDE) end_first_pass(s, epoch);
}

// Notes a wide segment of row `line` of A, or of column line - M of B.
__device__ __forceinline__ void note_wide(unsigned line, unsigned segment, const Shape& s,
                                          Control& c) {
    const unsigned i = atomicAdd(&c.wide_count, 1u);
    if (i < MAX_WIDE) c.wide[i] = line * s.segments + segment;
}

__device__ __forceinline__ float sum_of_warp(float x) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffffu, x, other);
    return x;
}

// A unit of work: a segment of LINES rows of A, or of LINES columns of B.
struct Unit {
    bool of_b;
    unsigned line, segment;  // the first line

    // The first unit of each block is a sample, so units of A and B alternate there, in proportion
    // to their numbers. Then come those of B, which take longer to load, then those of A.
    __device__ __forceinline__ Unit(const Shape& s, unsigned ticket) {
        const unsigned sample = min(s.workers, s.units), sample_a = sample * s.units_a / s.units;
        const unsigned units_b = s.units - s.units_a;
        const unsigned before = ticket < sample ? ticket * sample_a / sample : sample_a;
        of_b = ticket < sample ? before == (ticket + 1) * sample_a / sample
                               : ticket < units_b + sample_a;
        const unsigned index = of_b ? ticket - before : ticket < sample ? before : ticket - units_b;
        line = index / s.segments * LINES;
        segment = index % s.segments;
    }
};

// In shared memory, each line of a unit is contiguous. The pad spreads columns of B over the banks.
constexpr int LINE_LENGTH = SEGMENT_LENGTH + 4;
constexpr int UNIT_LENGTH = LINES * LINE_LENGTH;
static_assert(2 * UNIT_LENGTH * (int)sizeof(float) <= STAGES * STAGE_BYTES + SUM_BYTES,
              "the first phase uses the slots, and what is for sums");

// The elements of a unit that a thread loads; zeros outside of the matrix. Loads do not allocate
// lines of L1, because shared memory leaves few, and they would limit the loads in flight.
struct UnitPart {
    float v[LINES * SEGMENT_LENGTH / THREADS];
    float* to;
    bool whole_rows;  // the unit has aligned rows of A: the block reads a row at a time

    __device__ __forceinline__ void load(const float* A, const float* B, const Shape& s,
                                         const Unit& u, int thread, float* buffer) {
        whole_rows = !u.of_b && s.N % 4 == 0 && (size_t)A % 16 == 0;
        const unsigned k = u.segment * SEGMENT_LENGTH;
        if (whole_rows) {
            const unsigned n = k + thread * 4;
            const float* p = A + (size_t)u.line * s.N + n;
            const int rows = n < s.N ? s.M - (int)u.line : 0;
            to = buffer + thread * 4;
#pragma unroll
            for (int i = 0; i < LINES; ++i, p += s.N) {
                float* x = v + 4 * i;
                x[0] = x[1] = x[2] = x[3] = 0.0f;
                if (i < rows)
                    asm volatile("ld.global.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
                                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                                 : "l"(p));
            }
            return;
        }
        // Half a warp reads 64 consecutive bytes of a row of A or B.
        const int i16 = thread / 16, j16 = thread % 16;
        const unsigned line = u.line + (u.of_b ? j16 : i16), n = k + (u.of_b ? i16 : j16);
        const size_t step = 16 * (u.of_b ? (size_t)s.K : 1);
        const float* p = u.of_b ? B + (size_t)n * s.K + line : A + (size_t)line * s.N + n;
        const int left = line < (u.of_b ? s.K : s.M) ? s.N - (int)n : 0;
        to = buffer + (u.of_b ? j16 * LINE_LENGTH + i16 : i16 * LINE_LENGTH + j16);
#pragma unroll
        for (int i = 0; i < SEGMENT_LENGTH / 16; ++i, p += step) {
            v[i] = 0.0f;
            if (16 * i < left)
                asm volatile("ld.global.L1::no_allocate.f32 %0, [%1];" : "=f"(v[i]) : "l"(p));
        }
    }

    __device__ __forceinline__ void store() const {
        if (whole_rows) {
#pragma unroll
            for (int i = 0; i < LINES; ++i)
                *reinterpret_cast<float4*>(to + i * LINE_LENGTH) =
                    make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
        } else {
#pragma unroll
            for (int i = 0; i < SEGMENT_LENGTH / 16; ++i) to[16 * i] = v[i];
        }
    }
};

__device__ __forceinline__ unsigned char* pool_b(const Shape& s) {
    return pool + (size_t)s.row_tiles * s.chunks * (CHUNK_STAGES * A_BYTES);
}

// Where a warp stores the parts of a segment of a line, chunk by chunk. Each lane has four
// consecutive elements of a chunk.
template <bool WIDE>
struct Destination {
    unsigned char *fp16, *low, *high;
    unsigned step;  // to the next chunk
    float* factor;

    __device__ __forceinline__ Destination(const Shape& s, bool of_b, unsigned line,
                                           unsigned segment, int lane) {
        const unsigned height = of_b ? BN : BM, stage = height * ROW_BYTES;
        const unsigned tile = of_b ? line / BN : line / BM, row = line - tile * height;
        unsigned char* to = of_b ? pool_b(s) : pool;
        step = CHUNK_STAGES * stage;
        to += ((size_t)tile * s.chunks + segment * SEGMENT) * step;
        if (WIDE) {
            to += lane / 8 * stage + lane % 2 * 8;
            fp16 = to + place(row, lane % 8 / 2);
            low = to + place(row, lane % 8 / 2 + 4);
            high = nullptr;
        } else {
            // A stage multiplies low parts of one matrix by high parts of the other.
            unsigned char* int8 = to + place(row, lane / 4) + lane % 4 * 4;
            low = int8 + of_b * stage;
            high = int8 + !of_b * stage;
            fp16 = to + (HALF_CHUNK + lane / 16) * stage + place(row, lane % 16 / 2) + lane % 2 * 8;
        }
        factor = (of_b ? factors_b : factors_a) + (tile * s.segments + segment) * height + row;
    }

    // Stores the parts of a chunk, and goes on to the next one.
    __device__ __forceinline__ void store(const Parts& parts) {
        *reinterpret_cast<uint2*>(fp16) = parts.fp16;
        if (WIDE) {
            *reinterpret_cast<uint2*>(low) = parts.fp16_low;
        } else {
            *reinterpret_cast<unsigned*>(low) = parts.low;
            *reinterpret_cast<unsigned*>(high) = parts.high;
            high += step;
        }
        fp16 += step;
        low += step;
    }
};

// Splits a segment of a line by one warp, and returns whether it has infinities. In a sample,
// `share` is the number of segments that a segment stands for; otherwise it is 0.
template <bool WIDE>
__device__ __forceinline__ bool split_segment(const float* from, const Shape& s, bool of_b,
                                              unsigned line, unsigned segment,
                                              unsigned long long epoch, unsigned share, int lane,
                                              Control& c) {
    const float4* const values = reinterpret_cast<const float4*>(from) + lane;
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < SEGMENT; ++i) largest = max(largest, magnitude(values[i * 32]));
    largest = __reduce_max_sync(0xffffffffu, largest);
    Scale chosen = scale_for(largest);
    const float limit = __uint_as_float(largest);
    if (!WIDE && limit * chosen.scale < ROOM) {
        float squares = 0.0f;
        bool rounded = false;
#pragma unroll
        for (int i = 0; i < SEGMENT; ++i) {
            const float4 y = scaled(values[i * 32], chosen.scale);
            squares += squares_of(y);
            rounded |= needs_rounding(y.x) || needs_rounding(y.y) || needs_rounding(y.z) ||
                       needs_rounding(y.w);
        }
        chosen = stretched(chosen, limit, sum_of_warp(squares), rounded, segment, s);
    }
    Destination<WIDE> to(s, of_b, line, segment, lane);
    Noise noise(of_b, line, segment, lane);
    const int chunks = min((unsigned)SEGMENT, s.chunks - segment * SEGMENT);
    float squares = 0.0f;
#pragma unroll 2
    for (int i = 0; i < chunks; ++i) {
        const float4 y = scaled(values[i * 32], chosen.scale);
        if (!WIDE) squares += squares_of(y);
        to.store(split<WIDE>(y, noise));
    }
    if (!WIDE) squares = sum_of_warp(squares);
    if (lane == 0) {
        *to.factor = chosen.factor;
        if (!WIDE && chosen.range == TINY) end_first_pass(s, epoch);
        if (!WIDE && chosen.range == EXTREME) atomicMax(&extreme, epoch);
        if (!WIDE && exceeds(LIMIT, squares, segment, s)) {
            note_wide(of_b ? s.M + line : line, segment, s, c);
            if (share > 0) count_wide(share, s, epoch);
        }
    }
    return chosen.range == NOT_FINITE;
}

// Takes the outliers out of a wide segment, and splits the other elements again. This function is
// rare, so it is short rather than fast. It is not inlined, since it would need registers of the
// loops before it.
__device__ __noinline__ void take_outliers(const float* A, const float* B, Shape s,
                                           unsigned long long epoch, unsigned wide, int lane) {
    unsigned line = wide / s.segments;
    const unsigned segment = wide % s.segments, first = segment * SEGMENT_LENGTH;
    const bool of_b = line >= s.M;
    const unsigned index = of_b ? line - s.M : line;
    const float* p = of_b ? B + (size_t)first * s.K + index : A + (size_t)index * s.N + first;
    const size_t step = of_b ? s.K : 1;
    const int length = min(SEGMENT_LENGTH, s.N - (int)first);
    float v[SEGMENT_LENGTH / 32];  // four consecutive elements of each chunk
#pragma unroll 8
    for (int i = 0; i < SEGMENT_LENGTH / 32; ++i) {
        const int k = i / 4 * DEPTH + lane * 4 + i % 4;
        v[i] = k < length ? p[k * step] : 0.0f;
    }
    unsigned cut = 0xff << 23, largest;  // magnitudes from `cut` on are outliers
    float squares;                       // scaled, of the others
    bool rounded;
#pragma unroll 1
    for (;;) {
        largest = 0;
#pragma unroll 1
        for (int i = 0; i < SEGMENT_LENGTH / 32; ++i) {
            const unsigned size = __float_as_uint(fabsf(v[i]));
            if (size < cut) largest = max(largest, size);
        }
        largest = __reduce_max_sync(0xffffffffu, largest);
        const float scale = scale_for(largest).scale;
        squares = 0.0f;
        rounded = false;
#pragma unroll 1
        for (int i = 0; i < SEGMENT_LENGTH / 32; ++i) {
            const float y = v[i] * scale;
            if (__float_as_uint(fabsf(v[i])) >= cut) continue;
            squares += y * y;
            rounded |= needs_rounding(y);
        }
        squares = sum_of_warp(squares);
        if (!exceeds(LIMIT, squares, segment, s)) break;
        unsigned least = cut;
#pragma unroll 1
        for (int i = 0; i < SEGMENT_LENGTH / 32; ++i) {
            const float y = v[i] * scale;
            if (4 * y * y * length > LIMIT * LIMIT * squares)
                least = min(least, __float_as_uint(fabsf(v[i])));
        }
        cut = __reduce_min_sync(0xffffffffu, least);
    }
    unsigned own = 0;
#pragma unroll 1
    for (int i = 0; i < SEGMENT_LENGTH / 32; ++i) own += __float_as_uint(fabsf(v[i])) >= cut;
    unsigned end = own;  // outliers of the lanes up to this one
#pragma unroll
    for (int other = 1; other < 32; other *= 2) {
        const unsigned before = __shfl_up_sync(0xffffffffu, end, other);
        if (lane >= other) end += before;
    }
    const unsigned count = __shfl_sync(0xffffffffu, end, 31);
    unsigned start = 0;
    if (lane == 0) start = take(&outliers_taken, count);
    start = __shfl_sync(0xffffffffu, start, 0);
    if (start + count > OUTLIERS) {
        if (lane == 0) end_first_pass(s, epoch);
        return;
    }
    unsigned to_write = start + end - own;
#pragma unroll 1
    for (int i = 0; i < SEGMENT_LENGTH / 32; ++i) {
        if (__float_as_uint(fabsf(v[i])) < cut) continue;
        const unsigned k = first + i / 4 * DEPTH + lane * 4 + i % 4;
        outliers[to_write] = {line, k, v[i], to_write == start ? count : 0};
        ++to_write;
        v[i] = 0.0f;
    }
    // What is too small beside an outlier is no reason for another pass.
    largest = max(largest, 12u << 23);
    const Scale chosen =
        stretched(scale_for(largest), __uint_as_float(largest), squares, rounded, segment, s);
    Destination<false> to(s, of_b, index, segment, lane);
    Noise noise(of_b, index, segment, lane);
#pragma unroll 1
    for (int i = 0; i < SEGMENT && segment * SEGMENT + i < s.chunks; ++i) {
        const float4 four = {v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]};
        to.store(split<false>(scaled(four, chosen.scale), noise));
    }
    if (lane == 0) {
        *to.factor = chosen.factor;
        if (chosen.range == EXTREME) atomicMax(&extreme, epoch);
    }
}

// Phase one for one block. It loads the next unit into registers while it splits one from shared
// memory. Then it waits until all blocks have split all units.
template <bool WIDE>
__device__ __forceinline__ void split_matrices(const float* A, const float* B, const Shape& s,
                                               unsigned long long epoch, int thread, Control& c,
                                               unsigned char* shared) {
    const int warp = thread / 32, lane = thread % 32;
    float* const buffers = reinterpret_cast<float*>(shared);
    unsigned ahead = 0;  // a ticket taken in advance; valid in thread 0
    if (thread == 0) {
        c.wide_count = 0;
        c.ticket[0] = take(&tickets[WIDE]);
        ahead = take(&tickets[WIDE]);
    }
    __syncthreads();
    UnitPart part;
    unsigned ticket = 0, turn = 0;
    bool finite = true;
    // Turn 0 only loads. It is no separate code, because a multiprocessor executes code slowly for
    // the first time: it fetches it from L2.
#pragma unroll 1
    for (;; ++turn) {
        const unsigned next = c.ticket[turn % 2];
        if (next < s.units)
            part.load(A, B, s, Unit(s, next), thread, buffers + turn % 2 * UNIT_LENGTH);
        if (turn > 0) {
            const Unit u(s, ticket);
            const float* from = buffers + (turn - 1) % 2 * UNIT_LENGTH;
            const unsigned share = turn == 1 ? max(1u, s.units / s.workers) : 0;
#pragma unroll 1
            for (int i = warp; i < LINES; i += WARPS)
                finite &= !split_segment<WIDE>(from + i * LINE_LENGTH, s, u.of_b, u.line + i,
                                               u.segment, epoch, share, lane, c);
        }
        if (next >= s.units) break;
        ticket = next;
        part.store();
        if (thread == 0) {
            c.ticket[(turn + 1) % 2] = ahead;
            ahead = take(&tickets[WIDE]);
        }
        __syncthreads();
    }
    if (!finite && lane == 0) atomicMax(&not_finite, epoch);
    // Other blocks will read the pool by bulk copies (async proxy), after acquiring the counter.
    async_proxy_fence();
    __threadfence();
    __syncthreads();
    if (!WIDE && c.wide_count > 0) {
        if (c.wide_count > MAX_WIDE && thread == 0) end_first_pass(s, epoch);
        const bool needed = __syncthreads_and(*(volatile unsigned long long*)&too_wide != epoch);
#pragma unroll 1
        for (unsigned i = warp; needed && i < min(c.wide_count, MAX_WIDE); i += WARPS)
            take_outliers(A, B, s, epoch, c.wide[i], lane);
        async_proxy_fence();
        __threadfence();
        __syncthreads();
    }
    if (thread == 0) {
        atomicAdd(&units_done[WIDE], (unsigned long long)turn);
        while (load_acquire(&units_done[WIDE]) < epoch + s.units) {}
        c.outliers = *(volatile unsigned long long*)&outliers_taken - epoch;
    }
    __syncthreads();
    async_proxy_fence();
}

// ---- phase two: C = low·high + high·low (INT8 or FP16) + FP16·FP16 ------------------------------

// Operand lists of wgmma for 32 and for 72 accumulator registers of a thread.
#define SUMS_32                                                              \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_72                                                                                \
    SUMS_32 ", "                                                                               \
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
            "%48, %49, %50, %51, "                                                             \
            "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, " \
            "%68, %69, %70, %71"
#define EIGHT(type, acc, i)                                                               \
    type(acc[i]), type(acc[i + 1]), type(acc[i + 2]), type(acc[i + 3]), type(acc[i + 4]), \
        type(acc[i + 5]), type(acc[i + 6]), type(acc[i + 7])
#define ALL_32(type, acc) \
    EIGHT(type, acc, 0), EIGHT(type, acc, 8), EIGHT(type, acc, 16), EIGHT(type, acc, 24)
#define ALL_72(type, acc)                                                                \
    ALL_32(type, acc), EIGHT(type, acc, 32), EIGHT(type, acc, 40), EIGHT(type, acc, 48), \
        EIGHT(type, acc, 56), EIGHT(type, acc, 64)

// acc (+)= A·B for a 64 x 144 x 32 step in INT8; acc has integers. `accumulate` 0 overwrites acc.
__device__ __forceinline__ void wgmma_int8(unsigned (&acc)[BM / 2], unsigned long long a,
                                           unsigned long long b, int accumulate) {
    asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %74, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n144k32.s32.s8.s8 {" SUMS_72 "}, %72, %73, p;}\n"
                 : ALL_72("+r", acc)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// acc (+)= A·B for a 64 x 144 x 16 step in FP16; acc has the bits of floats.
template <bool ACCUMULATE>
__device__ __forceinline__ void wgmma_fp16(unsigned (&acc)[BM / 2], unsigned long long a,
                                           unsigned long long b) {
    asm volatile("{wgmma.mma_async.sync.aligned.m64n144k16.f32.f16.f16 {" SUMS_72
                 "}, %72, %73, %74, 1, 1, 0, 0;}\n"
                 : ALL_72("+r", acc)
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

// The work of a block between two promotions: one segment of a tile.
struct Piece {
    unsigned index;         // number of the tile
    unsigned chunk, count;  // first chunk of the piece, and number of chunks
    Tile tile;

    __device__ __forceinline__ void begin(unsigned tile_index, const Shape& s) {
        index = tile_index;
        tile = tile_of(tile_index, s);
        chunk = 0;
        count = min((unsigned)SEGMENT, s.chunks);
    }

    __device__ __forceinline__ bool is_last(const Shape& s) const {
        return chunk + count == s.chunks;
    }

    __device__ __forceinline__ void advance(const Shape& s) {
        if (is_last(s)) return begin(index + s.workers, s);
        chunk += count;
        count = min((unsigned)SEGMENT, s.chunks - chunk);
    }
};

// The next stage to copy. Each warp advances a copy of its own, since any warp may start the copy.
// With INT8, the steps of a piece are all its corrections, then all its FP16 products.
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

template <bool WIDE>
__device__ __forceinline__ Source source_of(const Cursor& next, const Shape& s) {
    const Piece& p = next.piece;
    unsigned stage = p.chunk * CHUNK_STAGES + next.step;
    if (!WIDE) {
        const unsigned first = HALF_CHUNK * p.count;  // the first step that is not a correction
        const bool main = next.step >= first;
        const unsigned step = main ? next.step - first : next.step;
        stage = (p.chunk + step / HALF_CHUNK) * CHUNK_STAGES + step % HALF_CHUNK +
                (main ? HALF_CHUNK : 0);
    }
    const unsigned a = p.tile.row * s.chunks * CHUNK_STAGES + stage;
    const unsigned b = p.tile.column * s.chunks * CHUNK_STAGES + stage;
    return {pool + (size_t)a * A_BYTES, pool_b(s) + (size_t)b * B_BYTES};
}

// Starts the copy of a stage into a slot; called by one thread. The last stage of a piece also
// brings its inverse scales. After the last tile nothing is copied, and the slot counts as full.
template <bool WIDE>
__device__ __forceinline__ void load_stage(const Cursor& next, const Source& from, Control& c,
                                           const Shape& s, unsigned char* slots, int slot) {
    const Piece& p = next.piece;
    unsigned char* to = slots + slot * STAGE_BYTES;
    unsigned long long* full = &c.full[slot];
    if (p.index >= s.tiles) return barrier_expect(full, 0);
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
    template <bool WIDE, int PENDING>
    __device__ __forceinline__ void release(int used) {
        const Source from = source_of<WIDE>(next, s);
        asm volatile("" ::"l"(from.rows), "l"(from.columns) : "memory");
        wgmma_wait<PENDING>();
        if (lane == 0) {
            unsigned before;
            asm volatile("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], %2;"
                         : "=r"(before)
                         : "r"(shared_address(&c.released[used])), "n"(WARPS - 1)
                         : "memory");
            if (before == WARPS - 1) load_stage<WIDE>(next, from, c, s, slots, used);
        }
        __syncwarp();
        next.advance(s);
    }

    // acc += the stage in `slot`, for one half of this warpgroup's columns. CORRECT: the stage has
    // INT8 corrections. WIDE: it has high and low FP16 parts, and small products come first.
    // FIRST: acc is overwritten, unless it has converted INT8 sums.
    template <bool WIDE, bool CORRECT, bool FIRST>
    __device__ __forceinline__ void multiply_half(unsigned (&acc)[BM / 2], int half) {
        const unsigned address = slots_address + slot * STAGE_BYTES;
        const unsigned long long a = descriptor(address);
        const unsigned long long b =
            descriptor(address + A_BYTES + (warpgroup * (BN / 2) + half * 64) * ROW_BYTES);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        if constexpr (WIDE) {
            constexpr int LOW = ROW_BYTES / 2 / 16;  // descriptor units (16 bytes) to the low parts
            wgmma_fp16<!FIRST>(acc, b + LOW, a);
            wgmma_fp16<true>(acc, b, a + LOW);
            wgmma_fp16<true>(acc, b + LOW + 2, a + 2);
            wgmma_fp16<true>(acc, b + 2, a + LOW + 2);
            wgmma_fp16<true>(acc, b, a);
            wgmma_fp16<true>(acc, b + 2, a + 2);
        } else {
#pragma unroll
            for (int k = 0; k < ROW_BYTES / 32; ++k) {
                if (CORRECT)
                    wgmma_int8(acc, b + 2 * k, a + 2 * k, !FIRST || k > 0);
                else
                    wgmma_fp16<true>(acc, b + 2 * k, a + 2 * k);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    __device__ __forceinline__ void pass() {
        previous = slot;
        if (++slot < STAGES) return;
        slot = 0;
        parity ^= 1;
    }

    // acc = the first stage, for all columns of this warpgroup.
    template <bool WIDE>
    __device__ __forceinline__ void multiply_first(unsigned (&acc)[2][BM / 2]) {
        barrier_wait(&c.full[slot], parity);
        multiply_half<WIDE, true, true>(acc[0], 0);
        multiply_half<WIDE, true, true>(acc[1], 1);
        pass();
    }

    // acc += the stage in `slot`. The slot before it is released as soon as half of the products
    // are issued, since issuing them takes as long as multiplying those of the other warpgroup.
    template <bool WIDE, bool CORRECT>
    __device__ __forceinline__ void multiply_stage(unsigned (&acc)[2][BM / 2]) {
        barrier_wait(&c.full[slot], parity);
        multiply_half<WIDE, CORRECT, false>(acc[0], 0);
        release<WIDE, 1>(previous);
        multiply_half<WIDE, CORRECT, false>(acc[1], 1);
        pass();
    }

    template <bool WIDE, bool CORRECT>
    __device__ __forceinline__ void multiply(unsigned (&acc)[2][BM / 2], unsigned steps) {
#pragma unroll 1
        for (unsigned step = 0; step < steps; ++step) multiply_stage<WIDE, CORRECT>(acc);
    }

    // Multiplies the last stage of a series and the first stage of the next series. Between them,
    // finish(h) processes half h of acc while the tensor cores work on the other half.
    template <bool WIDE, bool CORRECT, class Finish>
    __device__ __forceinline__ void turn(unsigned (&acc)[2][BM / 2], Finish finish) {
        multiply_stage<WIDE, CORRECT>(acc);
        wgmma_wait<1>();
        finish(0);
        barrier_wait(&c.full[slot], parity);
        multiply_half<WIDE, !CORRECT, true>(acc[0], 0);
        release<WIDE, 1>(previous);
        finish(1);
        multiply_half<WIDE, !CORRECT, true>(acc[1], 1);
        pass();
    }
};

__device__ __forceinline__ void to_float(unsigned& x) {
    asm volatile("{.reg .f32 f;\ncvt.rn.f32.s32 f, %0;\nmov.b32 %0, f;}\n" : "+r"(x)::"memory");
}

__device__ __forceinline__ void add_to(float* sums, float4 v) {
    sums[0] += v.x, sums[1] += v.y, sums[2] += v.z, sums[3] += v.w;
}

// Returns four sums and clears them.
__device__ __forceinline__ float4 taken(float* sums) {
    const float4 v = {sums[0], sums[1], sums[2], sums[3]};
    sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
    return v;
}

// Stores a thread's elements of HEIGHT rows x 64 columns of C. value(i) returns those of rows 8 i
// and 8 i + 1 and of columns 0 and 8, relative to `row` and `column`.
template <int HEIGHT, class Sizes, class Value>
__device__ __forceinline__ void store_rows(float* C, const Sizes& s, int row, int column,
                                           Value value) {
    const size_t row_step = s.K, group_step = (size_t)7 * s.K;
    const int height = column < s.K ? s.M - row : 0;
    const int height_right = column + 8 < s.K ? s.M - row : 0;
    float* p = C + (size_t)row * s.K + column;
#pragma unroll
    for (int i = 0; i < HEIGHT / 8; ++i, p += group_step) {
        const float4 v = value(i);
        if (8 * i < height) __stcs(p, v.x);
        if (8 * i < height_right) __stcs(p + 8, v.z);
        p += row_step;
        if (8 * i + 1 < height) __stcs(p, v.y);
        if (8 * i + 1 < height_right) __stcs(p + 8, v.w);
    }
}

// Returns a sum, given as bits, without the scales of its row and column. ANY: for any scales. Their
// product is exact within the range of a float. Otherwise both are large or both are small.
template <bool ANY>
__device__ __forceinline__ float unscaled(unsigned sum, float column, float row) {
    const float v = __uint_as_float(sum), both = column * row;
    if (ANY && both > 0.0f && both < __uint_as_float(0xff << 23)) return v * both;
    return v * column * row;
}

template <bool WIDE, bool ANY>
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
        if (thread == 0) load_stage<WIDE>(ring.next, source_of<WIDE>(ring.next, s), c, s, slots, i);

    // A thread's promoted sums: left columns in registers, those 64 further right in shared memory.
    float sum[BM / 2];
    float4* sum_right = reinterpret_cast<float4*>(slots + STAGES * STAGE_BYTES) + thread;
#pragma unroll
    for (int i = 0; i < BM / 2; ++i) sum[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < BM / 8; ++i) sum_right[i * THREADS] = {0.0f, 0.0f, 0.0f, 0.0f};
    const int own_row = lane % 4 * 2;
    const int own_column = warpgroup * (BN / 2) + warp * 16 + lane / 4;
    unsigned acc[2][BM / 2];
    unsigned parity = 1;
    // Promotes half h of the previous piece's accumulators. Stores C after a tile's last piece.
    auto finish = [&](int h) {
        const float* columns = c.column_factors[parity] + own_column + 64 * h;
        const float* rows = c.row_factors[parity] + own_row;
        const float left = columns[0], right = columns[8];
        unsigned(&v)[BM / 2] = acc[h];
        // Returns four accumulators with their scales removed: rows 8 i, 8 i + 1, columns 0, 8.
        // The empty asm keeps the compiler from moving reads of accumulators before the wait.
        auto promoted = [&](int i) {
            const float2 f = *reinterpret_cast<const float2*>(rows + 8 * i);
#pragma unroll
            for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(v[4 * i + e])::"memory");
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
        store_rows<BM>(C, s, tile.row * BM + own_row, tile.column * BN + own_column + 64 * h,
                       [&](int i) {
                           if (h == 0) {
                               add_to(&sum[4 * i], promoted(i));
                               return taken(&sum[4 * i]);
                           }
                           float4 v = promoted(i);
                           if (s.segments > 1) {
                               add_to(&v.x, sum_right[i * THREADS]);
                               sum_right[i * THREADS] = {0.0f, 0.0f, 0.0f, 0.0f};
                           }
                           return v;
                       });
    };
    if (piece.index >= s.tiles) return;
    // After the last tile one more stage is multiplied and discarded, so finish is inlined once.
    ring.multiply_first<WIDE>(acc);
#pragma unroll 1
    for (;;) {
        if (WIDE) {
            ring.multiply<WIDE, false>(acc, CHUNK_STAGES * piece.count - 2);
        } else {
            ring.multiply<WIDE, true>(acc, HALF_CHUNK * piece.count - 2);
            ring.turn<WIDE, true>(acc, [&](int h) {
#pragma unroll
                for (int i = 0; i < BM / 2; ++i) to_float(acc[h][i]);
            });
            ring.multiply<WIDE, false>(acc, HALF_CHUNK * piece.count - 2);
        }
        piece.advance(s);
        parity ^= 1;
        ring.turn<WIDE, false>(acc, finish);
        if (piece.index >= s.tiles) break;
    }
    wgmma_wait<0>();  // for the discarded products
}

// ---- phase three: the products of outliers ------------------------------------------------------

// The outliers of a segment: outliers[start] and the next count - 1.
struct Group {
    unsigned line, start, count;
};

// Calls add(k, value) for each outlier of a segment.
template <class Add>
__device__ __forceinline__ void for_each(const Group& group, unsigned lane, Add add) {
#pragma unroll 1
    for (unsigned first = 0; first < group.count; first += 32) {
        Outlier held = {};
        if (first + lane < group.count) held = outliers[group.start + first + lane];
#pragma unroll 4
        for (unsigned i = 0; i < min(group.count - first, 32u); ++i)
            add(__shfl_sync(0xffffffffu, held.k, i), __shfl_sync(0xffffffffu, held.value, i));
    }
}

// Adds outliers of a row of A, times rows of B, to a row of a tile.
__device__ __forceinline__ void add_to_row(const float* B, float* C, const Shape& s,
                                           const Group& group, unsigned tile_column,
                                           unsigned lane) {
    const unsigned column = tile_column * BN + lane;
    float sum[BN / 32] = {};
    for_each(group, lane, [&](unsigned k, float value) {
#pragma unroll
        for (int i = 0; i < BN / 32; ++i)
            if (column + 32 * i < s.K) sum[i] += value * B[(size_t)k * s.K + column + 32 * i];
    });
#pragma unroll
    for (int i = 0; i < BN / 32; ++i)
        if (column + 32 * i < s.K)
            atomicAdd(&C[(size_t)group.line * s.K + column + 32 * i], sum[i]);
}

// Adds columns of A, times outliers of a column of B, to a column of a tile. A is read from the
// pool, where rows of a tile are neighbours, and where A has no outliers. add_to_row has multiplied
// those. The FP16 part and its remainder give an element to within 2^-20 of the largest one.
__device__ __forceinline__ void add_to_column(float* C, const Shape& s, const Group& group,
                                              unsigned tile_row, unsigned lane) {
    constexpr int PARTS = (BM + 31) / 32;
    const unsigned row = tile_row * BM + lane, column = group.line - s.M;
    const unsigned char* tile = pool + (size_t)tile_row * s.chunks * (CHUNK_STAGES * A_BYTES);
    const unsigned segment = outliers[group.start].k / SEGMENT_LENGTH;
    const float* factors = factors_a + (tile_row * s.segments + segment) * BM + lane;
    float sum[PARTS] = {};
    for_each(group, lane, [&](unsigned k, float value) {
        const unsigned char* chunk = tile + (size_t)(k / DEPTH) * (CHUNK_STAGES * A_BYTES);
        const int at = k % DEPTH;
        const unsigned char* int8 = chunk + place(lane, at / 16) + at % 16;
        const unsigned char* fp16 =
            chunk + (HALF_CHUNK + at / 64) * A_BYTES + place(lane, at % 64 / 8) + at % 8 * 2;
#pragma unroll
        for (int i = 0; i < PARTS; ++i) {
            if (lane + 32 * i >= BM) continue;
            const int low = *reinterpret_cast<const signed char*>(int8 + i * 32 * ROW_BYTES);
            const unsigned short bits =
                *reinterpret_cast<const unsigned short*>(fp16 + i * 32 * ROW_BYTES);
            float high;
            asm("{\n.reg .f16 p;\nmov.b16 p, %1;\ncvt.f32.f16 %0, p;\n}\n"
                : "=f"(high)
                : "h"(bits));
            sum[i] += fmaf((float)low, 1.0f / 64, high) * factors[32 * i] * value;
        }
    });
#pragma unroll
    for (int i = 0; i < PARTS; ++i)
        if (lane + 32 * i < BM && row + 32 * i < s.M)
            atomicAdd(&C[(size_t)(row + 32 * i) * s.K + column], sum[i]);
}

// Adds the products of outliers to the tiles of this block. A warp adds those of one segment to one
// tile. This function is not inlined, since it would need registers of phase two.
__device__ __noinline__ void add_outliers(const float* B, float* C, Shape s, unsigned count,
                                          unsigned block, int thread) {
    const unsigned warp = thread / 32, lane = thread % 32;
#pragma unroll 1
    for (unsigned first = 0; first < count; first += THREADS) {
        const unsigned mine = first + lane * WARPS + warp;
        Outlier held = {};
        if (mine < count) held = outliers[mine];
        const bool of_b = held.line >= s.M;
        const unsigned tile_line = of_b ? (held.line - s.M) / BN : held.line / BM;
#pragma unroll 1
        for (unsigned index = block; index < s.tiles; index += s.workers) {
            const Tile tile = tile_of(index, s);
            const bool inside = held.count > 0 && tile_line == (of_b ? tile.column : tile.row);
#pragma unroll 1
            for (unsigned left = __ballot_sync(0xffffffffu, inside); left != 0; left &= left - 1) {
                const int from = __ffs(left) - 1;
                const Group group = {__shfl_sync(0xffffffffu, held.line, from),
                                     first + from * WARPS + warp,
                                     __shfl_sync(0xffffffffu, held.count, from)};
                if (group.line < s.M)
                    add_to_row(B, C, s, group, tile.column, lane);
                else
                    add_to_column(C, s, group, tile.row, lane);
            }
        }
    }
}

// ---- short N, matrices too large for the pool, infinities: plain FP32 -----------------------

constexpr int PART = 64, FP32_DEPTH = 32;  // rows and columns of C in a part; depth along N

struct Matrices {
    const float *A, *B;
    float* C;
    int M, N, K;
};

// Computes PART x PART elements of C. A thread computes every 16th row and column.
__device__ __forceinline__ void fp32_part(const Matrices& m, int row0, int column0, int thread,
                                          unsigned char* shared) {
    float(*As)[FP32_DEPTH + 1] = reinterpret_cast<float(*)[FP32_DEPTH + 1]>(shared);
    float(*Bs)[PART] = reinterpret_cast<float(*)[PART]>(As + PART);
    const int y = thread / 16, x = thread % 16;
    float sum[4][4] = {};
#pragma unroll 1
    for (int k0 = 0; k0 < m.N; k0 += FP32_DEPTH) {
#pragma unroll 1
        for (int i = thread; i < PART * FP32_DEPTH; i += THREADS) {
            const int row = row0 + i / FP32_DEPTH, k = k0 + i % FP32_DEPTH;
            As[i / FP32_DEPTH][i % FP32_DEPTH] =
                row < m.M && k < m.N ? m.A[(size_t)row * m.N + k] : 0.0f;
            const int column = column0 + i % PART, k_b = k0 + i / PART;
            Bs[i / PART][i % PART] =
                column < m.K && k_b < m.N ? m.B[(size_t)k_b * m.K + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < FP32_DEPTH; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += As[y + 16 * i][k] * Bs[k][x + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + y + 16 * i, column = column0 + x + 16 * j;
            if (row < m.M && column < m.K) m.C[(size_t)row * m.K + column] = sum[i][j];
        }
}

// Recomputes the last corner of C in FP32, one warp per element. The accuracy rule averages errors
// over blocks of 16 x 16; a corner block of fewer than 16 elements has too few to average.
__device__ __forceinline__ void fp32_corner(const Matrices& m, int thread) {
    const int height = m.M % 16, width = m.K % 16, lane = thread % 32;
    if (height * width >= 16) return;
    for (int element = thread / 32; element < height * width; element += WARPS) {
        const int row = m.M - height + element / width, column = m.K - width + element % width;
        float sum = 0.0f;
        for (int k = lane; k < m.N; k += 32)
            sum += m.A[(size_t)row * m.N + k] * m.B[(size_t)k * m.K + column];
        for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (lane == 0) m.C[(size_t)row * m.K + column] = sum;
    }
}

// ---- small problems: BF16 in one phase ---------------------------------------------------------

// Two phases take about 30 us before the first product. Small problems are computed as in 32: each
// block splits the values that it loads into two BF16 parts. All four products are added, since
// errors average over fewer terms. If a block finds an element outside 2^-100 .. 2^126, a part or a
// product could overflow or vanish; it then recomputes its tiles in FP32.
//     stage:  | high A | low A | high B | low B |      64 elements of each row or column, swizzled
constexpr int ROWS = 128, COLUMNS = 64;      // tile of C
constexpr int WG_ROWS = ROWS / 2;            // rows of a warpgroup
constexpr int SMALL_DEPTH = 64;              // elements of a stage along N
constexpr int PART_A = ROWS * ROW_BYTES;     // bytes of one part of A in a stage
constexpr int PART_B = COLUMNS * ROW_BYTES;  // bytes of one part of B
constexpr int SMALL_STAGE = 2 * (PART_A + PART_B);
constexpr int PROMOTE = 2;  // stages between two promotions

// The position of a stage. advance() visits all stages of all tiles of a block.
struct Place {
    int row, column, k;
    int rows_on, columns_on, width;  // step to the block's next tile; C's width in whole tiles

    __device__ __forceinline__ Place(const Matrices& m, int block, int blocks) {
        const int across = (m.K + COLUMNS - 1) / COLUMNS;
        row = block / across * ROWS;
        column = block % across * COLUMNS;
        k = 0;
        rows_on = blocks / across * ROWS;
        columns_on = blocks % across * COLUMNS;
        width = across * COLUMNS;
    }

    __device__ __forceinline__ bool is_last(const Matrices& m) const {
        return k + SMALL_DEPTH >= m.N;
    }

    __device__ __forceinline__ void advance(const Matrices& m) {
        k += SMALL_DEPTH;
        if (k < m.N) return;
        k = 0;
        row += rows_on;
        column += columns_on;
        if (column < width) return;
        column -= width;
        row += ROWS;
    }
};

// Splits two floats into two packed pairs of BF16: the rounded values and the rounded remainders.
__device__ __forceinline__ void split_bf16(float x, float y, unsigned& high, unsigned& low) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
    const float x_low = x - __uint_as_float(high << 16);
    const float y_low = y - __uint_as_float(high & 0xffff0000u);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y_low), "f"(x_low));
}

// The largest and the smallest magnitude of some values, as the bits of floats. Zeros are ignored.
struct Magnitudes {
    unsigned largest = 0, smallest = ~0u;  // `smallest` is less by one, so that zero wraps around

    __device__ __forceinline__ void add(float x) {
        const unsigned bits = __float_as_uint(fabsf(x));
        largest = max(largest, bits);
        smallest = min(smallest, bits - 1);
    }

    __device__ __forceinline__ bool is_extreme() const {
        return largest > (127u + 126) << 23 || smallest < ((127u - 100) << 23) - 1;
    }
};

// A thread's share of a stage, in registers between global and shared memory.
struct Values {
    float4 a[ROWS / 16];       // row thread / 16 + 16 i; elements 4 (thread % 16) to + 3 along N
    float b[COLUMNS / 32][8];  // column lane + 32 i; element 8 warp + j along N
    Magnitudes range;          // of all values that were split

    // Splits these values into `stage` if `split` is set, and refills the registers from `next`.
    __device__ __forceinline__ void pass(unsigned char* stage, bool split, const Matrices& m,
                                         const Place& next, int thread) {
        const int warp = thread / 32, lane = thread % 32;
        const int row = next.row + thread / 16, k = next.k + thread % 16 * 4;
        const bool aligned = m.N % 4 == 0 && (size_t)m.A % 16 == 0;
        const int rows = aligned && k < m.N ? m.M - row : 0;
        const float* p = m.A + (size_t)row * m.N + k;
        const size_t a_step = (size_t)16 * m.N, b_step = m.K;
        unsigned char* to = stage + place(thread / 16, thread % 16 / 2) + thread % 2 * 8;
#pragma unroll
        for (int i = 0; i < ROWS / 16; ++i, p += a_step, to += 16 * ROW_BYTES) {
            if (split) {
                range.add(a[i].x), range.add(a[i].y), range.add(a[i].z), range.add(a[i].w);
                uint2 high, low;
                split_bf16(a[i].x, a[i].y, high.x, low.x);
                split_bf16(a[i].z, a[i].w, high.y, low.y);
                *reinterpret_cast<uint2*>(to) = high;
                *reinterpret_cast<uint2*>(to + PART_A) = low;
            }
            a[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (16 * i < rows) a[i] = *reinterpret_cast<const float4*>(p);
        }
        if (!aligned) load_unaligned(m, row, k);
        const int column = next.column + lane, b_k = next.k + warp * 8;
        const float* q = m.B + (size_t)b_k * m.K + column;
        to = stage + 2 * PART_A + place(lane, warp);
#pragma unroll
        for (int i = 0; i < COLUMNS / 32; ++i, q += 32, to += 32 * ROW_BYTES) {
            if (split) {
#pragma unroll
                for (int j = 0; j < 8; ++j) range.add(b[i][j]);
                uint4 high, low;
                split_bf16(b[i][0], b[i][1], high.x, low.x);
                split_bf16(b[i][2], b[i][3], high.y, low.y);
                split_bf16(b[i][4], b[i][5], high.z, low.z);
                split_bf16(b[i][6], b[i][7], high.w, low.w);
                *reinterpret_cast<uint4*>(to) = high;
                *reinterpret_cast<uint4*>(to + PART_B) = low;
            }
            const int depth = next.row < m.M && column + 32 * i < m.K ? m.N - b_k : 0;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                b[i][j] = 0.0f;
                if (j < depth) b[i][j] = q[j * b_step];
            }
        }
    }

    // Loads A if its rows do not start at multiples of 16 bytes.
    __device__ __forceinline__ void load_unaligned(const Matrices& m, int row, int k) {
#pragma unroll
        for (int i = 0; i < ROWS / 16; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (row + 16 * i < m.M && k + e < m.N)
                    (&a[i].x)[e] = m.A[(size_t)(row + 16 * i) * m.N + k + e];
    }
};

// acc (+)= A·B for a 64 x 64 x 16 step in BF16.
__device__ __forceinline__ void wgmma_bf16(float (&acc)[WG_ROWS / 2], unsigned long long a,
                                           unsigned long long b, int accumulate) {
    asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SUMS_32
                 "}, %32, %33, p, 1, 1, 0, 0;}\n"
                 : ALL_32("+f", acc)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// Computes all tiles of a block in one loop. A stage is multiplied while the next one is split and
// the one after that is loaded.
__device__ __forceinline__ void multiply_small(const Matrices& m, int block, int blocks, int thread,
                                               unsigned char* stages) {
    const int warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
    const int tiles = (m.M + ROWS - 1) / ROWS * ((m.K + COLUMNS - 1) / COLUMNS);
    if (block >= tiles) return;
    const int depth = (m.N + SMALL_DEPTH - 1) / SMALL_DEPTH;
    const int count = ((tiles - 1 - block) / blocks + 1) * depth;
    Place now(m, block, blocks), next = now;
    Values v;
    float sum[WG_ROWS / 2], acc[WG_ROWS / 2];
#pragma unroll
    for (int i = 0; i < WG_ROWS / 2; ++i) sum[i] = 0.0f;
#pragma unroll 1
    for (int stage = -2; stage < count; ++stage) {  // stage 0 is loaded in -2 and split in -1
        if (stage >= 0) {
            const unsigned address = shared_address(stages) + stage % 2 * SMALL_STAGE;
            const unsigned long long a = descriptor(address + warpgroup * WG_ROWS * ROW_BYTES);
            const unsigned long long b = descriptor(address + 2 * PART_A);
            const bool fresh = now.k / SMALL_DEPTH % PROMOTE == 0;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < ROW_BYTES / 16; k += 2) {  // 16 values are 2 descriptor units
                const unsigned long long a_low = a + k + PART_A / 16, b_low = b + k + PART_B / 16;
                wgmma_bf16(acc, b_low, a_low, !fresh || k > 0);
                wgmma_bf16(acc, b_low, a + k, 1);
                wgmma_bf16(acc, b + k, a_low, 1);
                wgmma_bf16(acc, b + k, a + k, 1);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        }
        const bool split = stage >= -1 && stage + 1 < count;
        v.pass(stages + (stage + 1) % 2 * SMALL_STAGE, split, m, next, thread);
        next.advance(m);
        // The fence orders the stores before the reads of wgmma, which follow the barrier below.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (stage >= 0) {
            const bool last = now.is_last(m);
            if (last || now.k / SMALL_DEPTH % PROMOTE == PROMOTE - 1) {
#pragma unroll
                for (int i = 0; i < WG_ROWS / 2; ++i) {
                    asm volatile("" : "+f"(acc[i])::"memory");
                    sum[i] += acc[i];
                }
            }
            if (last) {
                store_rows<WG_ROWS>(m.C, m, now.row + warpgroup * WG_ROWS + lane % 4 * 2,
                                    now.column + warp * 16 + lane / 4, [&](int i) {
                                        return make_float4(sum[4 * i], sum[4 * i + 1],
                                                           sum[4 * i + 2], sum[4 * i + 3]);
                                    });
#pragma unroll
                for (int i = 0; i < WG_ROWS / 2; ++i) sum[i] = 0.0f;
            }
            now.advance(m);
        }
        __syncthreads();
    }
    if (__syncthreads_or(v.range.is_extreme())) {
        const int across = (m.K + COLUMNS - 1) / COLUMNS;
        for (int tile = block; tile < tiles; tile += blocks)
            for (int part = 0; part < ROWS / PART; ++part)
                fp32_part(m, tile / across * ROWS + part * PART, tile % across * COLUMNS, thread,
                          stages);
    }
    if ((tiles - 1) % blocks == block) fp32_corner(m, thread);
}

// ---- the kernel -------------------------------------------------------------------------------

constexpr int SHORT = 16;                   // largest N that is multiplied in plain FP32
constexpr long long SMALL = 1'400'000'000;  // most multiply-adds for which one phase is faster

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char slots[];
    Control& control = *reinterpret_cast<Control*>(slots + STAGES * STAGE_BYTES + SUM_BYTES);
    const int thread = threadIdx.y * 16 + threadIdx.x;

    Shape s = {M, N, K};
    s.row_tiles = (M + BM - 1) / BM;
    s.column_tiles = (K + BN - 1) / BN;
    s.tiles = s.row_tiles * s.column_tiles;
    s.chunks = (N + DEPTH - 1) / DEPTH;
    s.segments = (s.chunks + SEGMENT - 1) / SEGMENT;
    s.units_a = (M + LINES - 1) / LINES * s.segments;
    s.units = s.units_a + (K + LINES - 1) / LINES * s.segments;

    // One block fills a multiprocessor, so the others exit. Only plain FP32 uses all blocks.
    const long long needed =
        (long long)s.chunks * CHUNK_STAGES *
        ((long long)s.row_tiles * A_BYTES + (long long)s.column_tiles * B_BYTES);
    const bool plain = needed > POOL_BYTES || N <= SHORT;
    const bool small = !plain && (long long)M * N * K <= SMALL;
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    s.workers = plain ? blocks : min(multiprocessors(), blocks);
    if (block >= s.workers) return;
    const Matrices m = {A, B, C, M, N, K};
    if (__builtin_expect(small, 1)) return multiply_small(m, block, s.workers, thread, slots);
    const unsigned long long epoch = launch_epoch();
    bool wide = false, finite = true;
    if (!plain) {
        if (thread == 0) {
            for (int i = 0; i < STAGES; ++i) {
                barrier_init(&control.full[i], 1);
                control.released[i] = 0;
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            for (int pass = 0; pass < PASSES; ++pass) {
                atomicMax(&tickets[pass], epoch);
                atomicMax(&units_done[pass], epoch);
            }
            atomicMax(&blocks_done, epoch);
            atomicMax(&wide_segments, epoch);
            atomicMax(&outliers_taken, epoch);
        }
        split_matrices<false>(A, B, s, epoch, thread, control, slots);
        wide = *(volatile unsigned long long*)&too_wide == epoch;
        if (wide) split_matrices<true>(A, B, s, epoch, thread, control, slots);
        finite = *(volatile unsigned long long*)&not_finite != epoch;
    }
    if (plain || !finite) {
        const unsigned across = (K + PART - 1) / PART, down = (M + PART - 1) / PART;
        for (unsigned part = block; part < down * across; part += s.workers)
            fp32_part(m, part / across * PART, part % across * PART, thread, slots);
        if (plain) return;
    } else if (wide) {
        multiply_tiles<true, true>(C, s, block, thread, control, slots);
    } else {
        if (*(volatile unsigned long long*)&extreme == epoch)
            multiply_tiles<false, true>(C, s, block, thread, control, slots);
        else
            multiply_tiles<false, false>(C, s, block, thread, control, slots);
        if (control.outliers > 0) {
            __syncthreads();
            add_outliers(B, C, s, control.outliers, block, thread);
        }
    }

    // The last block resets the counters, since launches of a replayed graph have the same epoch.
    __syncthreads();
    if (thread == 0) {
        __threadfence();
        control.ticket[0] = atomicAdd(&blocks_done, 1ull) == epoch + s.workers - 1;
    }
    __syncthreads();
    if (control.ticket[0] == 0) return;
    fp32_corner(m, thread);
    if (thread == 0) {
        for (int pass = 0; pass < PASSES; ++pass) tickets[pass] = units_done[pass] = 0;
        wide_segments = outliers_taken = 0;
        extreme = too_wide = not_finite = 0;
        blocks_done = 0;
    }
}
