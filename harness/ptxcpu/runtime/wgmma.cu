// wgmma: warp w of four computes rows 16w to 16w+15 of the 64 x N product. It needs its part of A,
// all of B and its accumulators, but nothing from the other warps.

// A matrix in shared memory, described by its 64-bit descriptor. Its atoms have 8 rows, each as long
// as a swizzled row or, without swizzling, 16 bytes long.
struct SharedMatrix {
    Address start, along, over;  // its address; bytes to the next atom along the rows, and across them
    int log2;                    // log2 of the contiguous bytes in an atom
    bool transposed;             // whether the dimension of rows (or columns of B) is contiguous
};

__device__ __forceinline__ SharedMatrix shared_matrix(Address descriptor, bool transposed) {
    SharedMatrix m;
    int mode = (int)(descriptor >> 62);
    Address leading = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
    bool exchanged = transposed && mode == 0;
    m.start = (descriptor & 0x3fff) << 4;
    m.along = exchanged ? stride : leading;
    m.over = exchanged ? leading : stride;
    m.log2 = mode == 0 ? 4 : 8 - mode;
    m.transposed = transposed;
    return m;
}

// Swizzling permutes the pieces of 16 bytes: their numbers are combined with the row's number by
// exclusive or.
__device__ __forceinline__ Address swizzled(const SharedMatrix& m, Address at) {
    Address pieces = (1 << m.log2) - 1 >> 4;
    return at ^ ((at >> 7 & pieces) << 4);
}

// Returns where 16 bytes of a row would lie without swizzling.
__device__ __forceinline__ Address unswizzled(const SharedMatrix& m, int row, int byte) {
    int last = (1 << m.log2) - 1;
    Address at = m.start + (byte & last) + ((row & 7) << m.log2);
    return at + (byte >> m.log2) * m.along + (row >> 3) * m.over;
}

// Returns whether a matrix of so many rows and contiguous bytes is certainly inside the block's shared
// memory, so that its parts need no lookup. Swizzling stays inside 128 bytes.
__device__ bool is_inside(Context* c, const SharedMatrix& m, int rows, int bytes) {
    Address last = m.start + (((bytes - 1) >> m.log2) * m.along) + (((rows - 1) >> 3) * m.over) + (8ll << m.log2);
    return (last | 127) < c->shared_bytes && !((m.start | m.along | m.over) & 15);
}

// Loads eight rows of A or columns of B from the first one on, over the whole inner dimension: two
// words of all lanes, `stride` words apart. Each lane in turn brings 16 bytes. For a transposed
// matrix, the elements have 16 bits.
__device__ void fetch(Context* c, long long w, long long pc, const SharedMatrix& m, bool all_inside, int first,
                      unsigned* raw, int stride) {
    const int READ = ACCESS_READ | ACCESS_ASYNC | ACCESS_PROXY;
    Address begin = shared_begin(c);
    if (all_inside && !m.transposed) {
        if (c->checks) {
            ProductReads reads;
            begin_product_reads(&reads, c, w, pc);
            for (int piece = 0; piece < 16; ++piece) {
                int lane = (piece + first * 2) % LANES;
                Address at = swizzled(m, unswizzled(m, first + (piece & 7), (piece >> 3) * 16));
                if (!records_product_read(reads, lane, (unsigned)at)) check_access(c, w * LANES + lane, pc, begin + at, 16, READ);
            }
        }
        for (int half = 0; half < 2; ++half) {
            Address at = unswizzled(m, first, half * 16);
            long long* to = (long long*)(raw + half * stride * LANES);
#pragma unroll
            for (int row = 0; row < 8; ++row, at += 1 << m.log2) {
                const long long* from = (const long long*)(c->shared + swizzled(m, at));
                to[2 * row] = from[0];
                to[2 * row + 1] = from[1];
            }
        }
        return;
    }
    for (int piece = 0; piece < 16; ++piece) {
        int row = piece & 7, half = piece >> 3;
        Address at = swizzled(m, m.transposed ? unswizzled(m, piece, first * 2) : unswizzled(m, first + row, half * 16));
        const char* host = c->shared + at;
        long long t = w * LANES + (piece + first * 2) % LANES;
        if (!all_inside) host = checked_access(c, t, pc, begin + at, 16, 16, READ);
        else if (c->checks) check_access(c, t, pc, begin + at, 16, READ);
        if (!host) return;
        if (!m.transposed) copy_bytes((char*)(raw + half * stride * LANES + 4 * row), host, 16);
        else {
            unsigned short* to = (unsigned short*)(raw + half * stride * LANES) + row;
#pragma unroll
            for (int i = 0; i < 8; ++i) to[8 * i] = ((const unsigned short*)host)[i];
        }
    }
}

// variant: kind of A | kind of B << 3 | A in registers << 6 | A transposed << 7 | B transposed << 8 |
// product negated << 9 | saturates << 10 | N << 11; A: 4 registers, or 2 of its descriptor
const int OF_ROWS = 7 | 1 << 6 | 1 << 7 | 1 << 9;  // the bits of the variant that decide how A is unpacked

__device__ void unpack_rows(Context* c, long long w, const Product* p, Rows* rows) {
    const int BYTES = 32;  // of the inner dimension
    unsigned raw[4 * LANES];
    const unsigned* words = lane_words(c, w, p->a);
    if (!(p->variant >> 6 & 1)) {
        SharedMatrix m = shared_matrix(words[0] | (Address)words[LANES] << 32, p->variant >> 7 & 1);
        bool inside = m.transposed ? is_inside(c, m, 16, 128) : is_inside(c, m, 64, BYTES);
        for (int half = 0; half < 2; ++half)
            fetch(c, w, p->pc, m, inside, 16 * (int)(w & 3) + 8 * half, raw + half * LANES, 2);
        words = raw;
    }
    host_unpack_rows(p->variant & 7, rows, words, 2, p->variant >> 9 & 1);
}

__device__ void wgmma(Context* c, long long w, const Product* p, Rows* rows, bool same_rows) {
    const int BYTES = 32;
    int columns = p->variant >> 11;
    unsigned raw[2 * LANES];
    const unsigned* words = lane_words(c, w, p->b);
    bool accumulates = lane_words(c, w, p->uses_sums)[0];
    c->thread[w * LANES].issued += 1;
    c->thread[w * LANES].issued_pc = p->pc;
    if (!same_rows) unpack_rows(c, w, p, rows);
    SharedMatrix m = shared_matrix(words[0] | (Address)words[LANES] << 32, p->variant >> 8 & 1);
    bool inside = m.transposed ? is_inside(c, m, 16, 2 * columns) : is_inside(c, m, columns, BYTES);
    for (int column = 0; column < columns; column += TILE_COLUMNS) {
        unsigned* d = lane_words(c, w, p->sums + column / 2);
        for (int i = 0; !accumulates && i < 4 * LANES; ++i) d[i] = 0;
        fetch(c, w, p->pc, m, inside, column, raw, 1);
        host_multiply(p->variant >> 3 & 7, d, rows, raw, 2, p->variant >> 10 & 1);
    }
}

// Reports that a thread reads a register to which a product adds, before the product is complete.
// product: its instruction, and above bit 32 its group; complete: the groups that the thread has
// waited for
extern "C" __device__ void rt_read_sum(Context* c, long long t, long long pc, long long product, long long complete) {
    if (c->checks && product >> 32 > complete)
        note(c, FINDING_KIND_SUM_IN_FLIGHT, pc, product & 0xffffffff, t, number_of(c, t), 0, 0, 0, 0);
}

// Executes the products and loads of a batch, one after the other. The words of operands do not change
// after they were written.
__device__ __noinline__ void execute_products(Context* c, long long w, const Product* product) {
    Rows rows;
    const Product* last = 0;
    for (const Product* p = product; p->pc >= 0 && !c->fault; ++p) {
        if (p->uses_sums == LOADS) {
            move_matrix(c, w, p->pc, p->variant, p->a, p->sums, false);
            continue;
        }
        bool is_mma = p->uses_sums < 0;
        int mask = is_mma ? -1 : OF_ROWS;
        bool same_rows = last && is_mma == (last->uses_sums < 0) && p->a == last->a && !((p->variant ^ last->variant) & mask);
        if (is_mma) mma(c, w, p, &rows, same_rows);
        else wgmma(c, w, p, &rows, same_rows);
        last = p;
    }
}
