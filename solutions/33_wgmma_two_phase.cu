// Three BF16 products in two phases of one launch: split once, then multiply.
// solve: tile=200x32 shared_memory=211200
//
// Idea. wgmma reads BF16 operands from shared memory in a swizzled layout. In 32 every block splits
// the values that it uses, so each value is split 32 or 64 times. Here each value is split once.
// Phase one splits A and B into a pool in global memory, in the layout of shared memory. In phase
// two a stage is therefore two contiguous bulk copies, without a tensor map. wgmma computes
// C' = B'A': its M, 64 for each of two warpgroups, are columns of C, and its N = 200 are rows. 100
// accumulators and 100 sums per thread fit the registers. 41 x 32 tiles are 9.94 waves of blocks.
//
// Inputs. As in 31, two BF16 parts keep 16 bits of each value (grade B). Blocks of random inputs
// have up to 5.1e-6 in its report, and 9.1e-6 in one drawn case of rectangles of different scale;
// the limit is 1e-5. Products that cancel have 1.6e-4, in other gradings 8.3e-4; cuBLAS has 6e-7. 34
// is more accurate. Plain FP32 is used for N <= 64, for small problems and for matrices that do not
// fit the pool. The pool of 544 MiB holds 8192 x 8192 x 8192.
//
//     Phase one: blocks take units of 128 elements along N, of all rows or columns of a tile.
//       global memory -> registers -> split -> shared memory -> one bulk store -> pool
//       stage:  200 rows of A and 128 columns of B, 32 elements of each, swizzled
//               | high parts, 64 bytes | low parts, 64 bytes |
//     All blocks wait until units_done has counted all units.
//     Phase two: a block multiplies every 132nd tile of 200 x 128.
//       copies of a stage --- mbarrier full[slot] ---> all eight warps multiply it
//       all eight warps --- counter released[slot] ---> the last of them refills the slot
//
// There is no producer warp, and the copies of the next tile start before this tile is stored.
// A block waits only for units that running blocks have taken, and splitting never waits. So no
// scheduling order of the blocks can deadlock. Counters contain the number of the launch. Two
// launches must not overlap. The declared tile is narrower than the computed one, so that small
// problems have enough blocks. In large problems the excess blocks exit at once.
//
// Expected gain over 32: 1237 GFLOP at 790 TFLOP/s take 1.57 ms, and reading and writing 302 MB
// each at 3 TB/s takes 0.2 ms, 1.8 ms in all.
// In the judge, on an H200: 4.858 x cuBLAS (95 %: 4.850 to 4.865), 1.681 ms, 1.52 x the speed
// of 32; 250 registers, 211200 B of shared memory, 1 block a multiprocessor.
// reports/h200/33_wgmma_two_phase.json has the rest.

constexpr int BM = 200;  // rows of C in a tile: wgmma's N
constexpr int BN = 128;  // columns of C in a tile: wgmma's M, 64 for each warpgroup
constexpr int BK = 32;   // elements of a stage along N
constexpr int STAGES = 5;
constexpr int CHUNK = 4;        // stages of a unit of phase one
constexpr int PROMOTE = 8;      // stages between two promotions: 256 elements along N
constexpr unsigned RASTER = 8;  // tile columns that tiles of neighbouring blocks share
constexpr int LAUNCH_COLUMNS = 32;
constexpr int ROW_BYTES = 4 * BK;  // a row of a stage: BK high parts, then BK low parts
constexpr int A_BYTES = BM * ROW_BYTES;
constexpr int B_BYTES = BN * ROW_BYTES;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int BUFFER_BYTES = CHUNK * A_BYTES;  // a split unit in shared memory
constexpr int WARPS = 8;
constexpr long long POOL_BYTES = 544ll << 20;
constexpr long long SMALL = 8'000'000;  // most multiply-adds for which plain FP32 is faster

// The split matrices, by tile and stage: A first, then B. A stage has the layout that wgmma reads.
__device__ __align__(1024) unsigned char pool[POOL_BYTES];
// Launch-wide counters: the epoch of the launch in the high 40 bits, a count in the low 24.
__device__ unsigned long long tickets;
__device__ unsigned long long units_done;
__device__ unsigned long long blocks_done;
constexpr int COUNT_BITS = 24;

struct Shape {
    int M, N, K;
    unsigned row_tiles, column_tiles, tiles;
    // along N, in units of PROMOTE stages, of CHUNK stages, and of one stage
    unsigned periods, chunks, steps;
    unsigned units_a, units;  // units of phase one: of A, and of both matrices
    unsigned workers;         // blocks that share all work; the others exit
};

struct Control {
    unsigned long long full[STAGES];  // mbarriers: the copies into a slot are complete
    unsigned released[STAGES];        // releases of a slot by warps; never reset
    unsigned ticket;                  // the next unit of phase one
};

static_assert(1024 + STAGES * STAGE_BYTES + sizeof(Control) <= 211200,
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

// ---- phase one: x = high + low, both BF16 -----------------------------------------------------

// Splits two floats into two packed pairs of BF16: the rounded values and the rounded remainders.
__device__ __forceinline__ void split(float x, float y, unsigned& high, unsigned& low) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
    const float x_low = x - __uint_as_float(high << 16);
    const float y_low = y - __uint_as_float(high & 0xffff0000u);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y_low), "f"(x_low));
}

// Waits until the bulk store of the unit before the last has read the buffer, which is reused now.
__device__ __forceinline__ void wait_for_buffer(int thread) {
    if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    __syncthreads();
}

// Splits a unit of A into `buffer`. A warp reads rows warp + 8 i, and a lane four values of each.
__device__ __forceinline__ void split_a(const float* A, const Shape& s, unsigned unit, int thread,
                                        unsigned char* buffer) {
    constexpr int ROWS = BM / WARPS;
    const int warp = thread / 32, lane = thread % 32;
    const int row0 = unit / s.chunks * BM + warp, k0 = unit % s.chunks * CHUNK * BK + 4 * lane;
    const float* from = A + (size_t)row0 * s.N + k0;
    const size_t step = (size_t)WARPS * s.N;
    float4 v[ROWS];
    if (s.N % 4 == 0 && (size_t)A % 16 == 0) {
        const int rows = k0 < s.N ? s.M - row0 : 0;
#pragma unroll
        for (int i = 0; i < ROWS; ++i, from += step) {
            v[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (WARPS * i < rows) v[i] = __ldcs(reinterpret_cast<const float4*>(from));
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int rows = k0 + e < s.N ? s.M - row0 : 0;
            const float* p = from + e;
#pragma unroll
            for (int i = 0; i < ROWS; ++i, p += step) {
                (&v[i].x)[e] = 0.0f;
                if (WARPS * i < rows) (&v[i].x)[e] = *p;
            }
        }
    }
    wait_for_buffer(thread);
    const int segment = lane % 8 / 2;  // 16-byte segment of the row; low parts are 4 segments on
    unsigned char* high = buffer + lane / 8 * A_BYTES + (segment ^ warp) * 16 + lane % 2 * 8;
    unsigned char* low = buffer + lane / 8 * A_BYTES + ((segment + 4) ^ warp) * 16 + lane % 2 * 8;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = warp + WARPS * i;  // row % 8 == warp, so all rows have one swizzle
        uint2 h, l;
        split(v[i].x, v[i].y, h.x, l.x);
        split(v[i].z, v[i].w, h.y, l.y);
        *reinterpret_cast<uint2*>(high + row * ROW_BYTES) = h;
        *reinterpret_cast<uint2*>(low + row * ROW_BYTES) = l;
    }
}

// Splits a unit of B into `buffer`, transposed. A thread writes segments warp + 8 o of columns
// lane + 32 q. A segment is 8 elements along N.
__device__ __forceinline__ void split_b(const float* B, const Shape& s, unsigned unit, int thread,
                                        unsigned char* buffer) {
    constexpr int SEGMENTS = CHUNK * BK / 8 / WARPS, COLUMNS = BN / 32;
    const int warp = thread / 32, lane = thread % 32;
    const int k0 = unit % s.chunks * CHUNK * BK + warp * 8, column0 = unit / s.chunks * BN + lane;
    const size_t row_step = s.K, segment_step = (size_t)(WARPS * 8) * s.K;
    const float* segment_from = B + (size_t)k0 * s.K + column0;
    int rows[COLUMNS];
#pragma unroll
    for (int q = 0; q < COLUMNS; ++q) rows[q] = column0 + 32 * q < s.K ? s.N - k0 : 0;
    float v[SEGMENTS][COLUMNS][8];
#pragma unroll
    for (int o = 0; o < SEGMENTS; ++o, segment_from += segment_step) {
        const float* from = segment_from;
#pragma unroll
        for (int j = 0; j < 8; ++j, from += row_step)
#pragma unroll
            for (int q = 0; q < COLUMNS; ++q) {
                v[o][q][j] = 0.0f;
                if (o * WARPS * 8 + j < rows[q]) v[o][q][j] = __ldcs(from + 32 * q);
            }
    }
    wait_for_buffer(thread);
#pragma unroll
    for (int o = 0; o < SEGMENTS; ++o)
#pragma unroll
        for (int q = 0; q < COLUMNS; ++q) {
            const int index = warp + WARPS * o, column = lane + 32 * q, segment = index % 4;
            uint4 h, l;
            split(v[o][q][0], v[o][q][1], h.x, l.x);
            split(v[o][q][2], v[o][q][3], h.y, l.y);
            split(v[o][q][4], v[o][q][5], h.z, l.z);
            split(v[o][q][6], v[o][q][7], h.w, l.w);
            unsigned char* row = buffer + index / 4 * B_BYTES + column * ROW_BYTES;
            *reinterpret_cast<uint4*>(row + (segment ^ column % 8) * 16) = h;
            *reinterpret_cast<uint4*>(row + ((segment + 4) ^ column % 8) * 16) = l;
        }
}

// Phase one for one block. Units of A have lower tickets than units of B.
__device__ __forceinline__ void split_units(const float* A, const float* B, const Shape& s,
                                            int thread, Control& c, unsigned char* shared) {
    unsigned ticket = c.ticket, done = 0;
    for (; ticket < s.units; ++done) {
        unsigned next = 0;
        if (thread == 0) next = take(&tickets);  // the latency overlaps the split
        unsigned char* buffer = shared + done % 2 * BUFFER_BYTES;
        unsigned char* to = pool;
        int bytes;
        if (ticket < s.units_a) {
            split_a(A, s, ticket, thread, buffer);
            to += (size_t)ticket * CHUNK * A_BYTES;
            bytes = CHUNK * A_BYTES;
        } else {
            const unsigned unit = ticket - s.units_a;
            split_b(B, s, unit, thread, buffer);
            to += (size_t)s.units_a * CHUNK * A_BYTES + (size_t)unit * CHUNK * B_BYTES;
            bytes = CHUNK * B_BYTES;
        }
        // The bulk store (async proxy) must see the stores of all threads to the buffer.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        if (thread == 0) c.ticket = next;
        __syncthreads();
        if (thread == 0) bulk_store(to, buffer, bytes);
        ticket = c.ticket;
    }
    if (thread == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        async_proxy_fence();
        __threadfence();
        atomicAdd(&units_done, (unsigned long long)done);
    }
}

// Waits until all units are done. The fence orders later bulk copies (async proxy) after this.
__device__ __forceinline__ void wait_for_units(unsigned long long count, int thread) {
    if (thread == 0)
        while (load_acquire(&units_done) < count) {}
    __syncthreads();
    async_proxy_fence();
}

// ---- phase two: C = A·B from high·high + high·low + low·high ----------------------------------

// acc (+)= A·B for a 64 x 200 x 16 step, with both operands K-major. `accumulate` 0 overwrites acc.
__device__ __forceinline__ void wgmma(float (&acc)[100], unsigned long long a, unsigned long long b,
                                      int accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %102, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n200k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99}, "
        "%100, %101, p, 1, 1, 0, 0;\n}\n"
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
          "+f"(acc[66]), "+f"(acc[67]), "+f"(acc[68]), "+f"(acc[69]), "+f"(acc[70]), "+f"(acc[71]),
          "+f"(acc[72]), "+f"(acc[73]), "+f"(acc[74]), "+f"(acc[75]), "+f"(acc[76]), "+f"(acc[77]),
          "+f"(acc[78]), "+f"(acc[79]), "+f"(acc[80]), "+f"(acc[81]), "+f"(acc[82]), "+f"(acc[83]),
          "+f"(acc[84]), "+f"(acc[85]), "+f"(acc[86]), "+f"(acc[87]), "+f"(acc[88]), "+f"(acc[89]),
          "+f"(acc[90]), "+f"(acc[91]), "+f"(acc[92]), "+f"(acc[93]), "+f"(acc[94]), "+f"(acc[95]),
          "+f"(acc[96]), "+f"(acc[97]), "+f"(acc[98]), "+f"(acc[99])
        : "l"(a), "l"(b), "r"(accumulate));
}

// Returns a wgmma descriptor: K-major, 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
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

// The next stage to copy. Each warp advances a copy of its own, since any warp may start the copy.
struct Cursor {
    unsigned index, step;  // number of the tile, stage within the tile
    unsigned a, b;         // number of the stage in the pool of A and of B

    __device__ __forceinline__ void begin(unsigned tile_index, const Shape& s) {
        const Tile t = tile_of(tile_index, s);
        index = tile_index;
        step = 0;
        a = t.row * s.steps;
        b = t.column * s.steps;
    }

    __device__ __forceinline__ void advance(const Shape& s) {
        ++a;
        ++b;
        if (++step == s.steps) begin(index + s.workers, s);
    }
};

// Starts the copy of a stage into a slot; called by one thread.
__device__ __forceinline__ void load_stage(const Cursor& next, Control& c, const Shape& s,
                                           unsigned char* slots, int slot) {
    if (next.index >= s.tiles) return;
    const unsigned char* pool_b = pool + (size_t)s.row_tiles * s.steps * A_BYTES;
    unsigned char* to = slots + slot * STAGE_BYTES;
    barrier_expect(&c.full[slot], STAGE_BYTES);
    bulk_load(to, pool + (size_t)next.a * A_BYTES, A_BYTES, &c.full[slot]);
    bulk_load(to + A_BYTES, pool_b + (size_t)next.b * B_BYTES, B_BYTES, &c.full[slot]);
}

// Releases a slot. The last of the eight warps to release it starts its refill, so no warp waits
// for a free slot. The atomic's release and acquire order all reads of the slot before the refill.
__device__ __forceinline__ void release(Cursor& next, Control& c, const Shape& s,
                                        unsigned char* slots, int slot, int lane) {
    if (lane == 0) {
        unsigned before;
        asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
                     : "=r"(before)
                     : "r"(shared_address(&c.released[slot]))
                     : "memory");
        if (before % WARPS == WARPS - 1) load_stage(next, c, s, slots, slot);
    }
    __syncwarp();
    next.advance(s);
}

// Recomputes the last corner of C in FP32, one warp per element. Two BF16 parts keep 16 bits, an
// error of about 4.5e-6 of an element's size. The accuracy rule averages errors over blocks of
// 16 x 16; a corner block of fewer than 8 elements has too few to average.
__device__ __forceinline__ void fp32_corner(const float* A, const float* B, float* C, int M, int N,
                                            int K, int thread) {
    const int height = M % 16, width = K % 16, element = thread / 32, lane = thread % 32;
    if (height * width >= 8 || element >= height * width) return;
    const int row = M - height + element / width, column = K - width + element % width;
    float sum = 0.0f;
    for (int k = lane; k < N; k += 32) sum += A[(size_t)row * N + k] * B[(size_t)k * K + column];
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0) C[(size_t)row * K + column] = sum;
}

__device__ __forceinline__ void multiply_tiles(const float* A, const float* B, float* C,
                                               const Shape& s, unsigned block, int thread,
                                               Control& c, unsigned char* slots) {
    const int warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
    const unsigned slots_address = shared_address(slots);
    Cursor next;
    next.begin(block, s);
#pragma unroll 1
    for (int i = 0; i < STAGES; ++i, next.advance(s))
        if (thread == 0) load_stage(next, c, s, slots, i);

    int slot = 0;
    unsigned parity = 0;
    for (unsigned index = block; index < s.tiles; index += s.workers) {
        const Tile tile = tile_of(index, s);

        float sum[BM / 2];
#pragma unroll
        for (int i = 0; i < BM / 2; ++i) sum[i] = 0.0f;
#pragma unroll 1
        for (unsigned period = 0; period < s.periods; ++period) {
            float acc[BM / 2];
            int previous = 0;
#pragma unroll 1
            for (int step = 0; step < PROMOTE; ++step) {
                barrier_wait(&c.full[slot], parity);
                const unsigned address = slots_address + slot * STAGE_BYTES;
                const unsigned long long a = descriptor(address);
                const unsigned long long b =
                    descriptor(address + A_BYTES + warpgroup * 64 * ROW_BYTES);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int k = 0; k < BK / 16; ++k) {  // 16 values are 2 descriptor units, BK are 4
                    wgmma(acc, b + 4 + 2 * k, a + 2 * k, step > 0 || k > 0);
                    wgmma(acc, b + 2 * k, a + 4 + 2 * k, 1);
                    wgmma(acc, b + 2 * k, a + 2 * k, 1);
                }
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                if (step > 0) {
                    wgmma_wait<1>();
                    release(next, c, s, slots, previous, lane);
                }
                previous = slot;
                if (++slot == STAGES) {
                    slot = 0;
                    parity ^= 1;
                }
            }
            wgmma_wait<0>();
            release(next, c, s, slots, previous, lane);
#pragma unroll
            for (int i = 0; i < BM / 2; ++i) {
                asm volatile("" : "+f"(acc[i])::"memory");
                sum[i] += acc[i];
            }
        }

        const int row = tile.row * BM + lane % 4 * 2,
                  column = tile.column * BN + warpgroup * 64 + warp * 16 + lane / 4;
        const int rows = column < s.K ? s.M - row : 0,
                  rows_right = column + 8 < s.K ? s.M - row : 0;
        const size_t row_step = s.K, group_step = (size_t)7 * s.K;
        float* p = C + (size_t)row * s.K + column;
#pragma unroll
        // rows 8 i and 8 i + 1, columns 0 and 8
        for (int i = 0; i < BM / 8; ++i, p += group_step) {
            if (8 * i < rows) __stcs(p, sum[4 * i]);
            if (8 * i < rows_right) __stcs(p + 8, sum[4 * i + 2]);
            p += row_step;
            if (8 * i + 1 < rows) __stcs(p, sum[4 * i + 1]);
            if (8 * i + 1 < rows_right) __stcs(p + 8, sum[4 * i + 3]);
        }
        if (tile.row == s.row_tiles - 1 && tile.column == s.column_tiles - 1) {
            __syncthreads();  // before these elements are overwritten
            fp32_corner(A, B, C, s.M, s.N, s.K, thread);
        }
    }
}

// ---- short N, small problems, matrices too large for the pool: plain FP32 ----------------------

// Computes BM x LAUNCH_COLUMNS of C, 32 rows at a time. Eight lanes share a row, four columns each.
__device__ __forceinline__ void fp32_tile(const float* A, const float* B, float* C, const Shape& s,
                                          int row0, int column0, int thread,
                                          unsigned char* shared) {
    constexpr int STRIDE = BK + 4;  // a warp's four rows start in different banks
    constexpr int TM = (BM + 31) / 32, LOADS_A = BM / WARPS, LOADS_B = BK / WARPS;
    float(*As)[STRIDE] = reinterpret_cast<float(*)[STRIDE]>(shared);
    float(*Bs)[LAUNCH_COLUMNS] =
        reinterpret_cast<float(*)[LAUNCH_COLUMNS]>(shared + 32 * TM * STRIDE * sizeof(float));
    const int warp = thread / 32, lane = thread % 32;
    const int height = min(BM, s.M - row0), row = thread / 8, column = thread % 8 * 4;
    const int passes = (height + 31) / 32;
    const size_t a_step = (size_t)WARPS * s.N, b_step = (size_t)WARPS * s.K,
                 c_step = (size_t)32 * s.K;
    float sum[TM][4] = {}, a_next[LOADS_A], b_next[LOADS_B];
    for (int k0 = 0; k0 < s.N + BK; k0 += BK) {
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
            for (int k = 0; k < BK; k += 4) {
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
    Control& control = *reinterpret_cast<Control*>(slots + STAGES * STAGE_BYTES);
    const int thread = threadIdx.y * 16 + threadIdx.x;

    Shape s = {M, N, K};
    s.row_tiles = (M + BM - 1) / BM;
    s.column_tiles = (K + BN - 1) / BN;
    s.tiles = s.row_tiles * s.column_tiles;
    s.periods = (N + PROMOTE * BK - 1) / (PROMOTE * BK);
    s.steps = s.periods * PROMOTE;
    s.chunks = s.steps / CHUNK;
    s.units_a = s.row_tiles * s.chunks;
    s.units = s.units_a + s.column_tiles * s.chunks;

    const long long needed = (long long)s.steps * ((long long)s.row_tiles * A_BYTES +
                                                   (long long)s.column_tiles * B_BYTES);
    if (needed > POOL_BYTES || N <= 64 || (long long)M * N * K <= SMALL) {
        fp32_tile(A, B, C, s, blockIdx.y * BM, blockIdx.x * LAUNCH_COLUMNS, thread, slots);
        return;
    }

    // One block fills a multiprocessor, so the others exit.
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    s.workers = min(multiprocessors(), gridDim.x * gridDim.y);
    if (block >= s.workers) return;

    const unsigned long long epoch = launch_epoch();
    if (thread == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&control.full[i], 1);
            control.released[i] = 0;
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        atomicMax(&tickets, epoch);
        atomicMax(&units_done, epoch);
        atomicMax(&blocks_done, epoch);
        control.ticket = take(&tickets);
    }
    __syncthreads();

    split_units(A, B, s, thread, control, slots);
    wait_for_units(epoch + s.units, thread);
    multiply_tiles(A, B, C, s, block, thread, control, slots);

    // The last block resets the counters, since launches of a replayed graph have the same epoch.
    if (thread == 0 && atomicAdd(&blocks_done, 1ull) == epoch + s.workers - 1) {
        tickets = 0;
        units_done = 0;
        blocks_done = 0;
    }
}
