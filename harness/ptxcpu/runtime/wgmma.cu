// wgmma: warp w of four computes rows 16w to 16w+15 of the 64 x N product, for which it needs
// no other warp: its part of A, all of B, its accumulators.

// A matrix in shared memory as its 64-bit descriptor gives it: atoms of 8 rows, as long as a swizzled
// row or, without swizzle, 16 bytes.
struct SharedMatrix {
    Address start, along, over;  // bytes: where it lies, to the next atom along the rows, over the rows
    int log2;                    // of the bytes side by side in an atom
    bool transposed;             // the dimension of rows (or columns of B) lies side by side
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

// The shared-memory address of 16 bytes of a row, the pieces of which are exchanged by exclusive or
// with the row's number.
__device__ __forceinline__ Address place(const SharedMatrix& m, int row, int byte) {
    int last = (1 << m.log2) - 1;
    Address at = m.start + (byte & last) + ((row & 7) << m.log2);
    at += (byte >> m.log2) * m.along + (row >> 3) * m.over;
    return at ^ ((at >> 7 & last >> 4) << 4);
}

// Rows of A or columns of B from the first one on, in all of their depth. The lanes bring 16 bytes
// each, in turn.
template <int KIND, class Part>
__device__ void fetch_as(Context* c, long long w, long long pc, const SharedMatrix& m, int first, Part& to) {
    const int PER_WORD = per_word(KIND), EACH = 4 * PER_WORD, BYTES = 4 / PER_WORD, DEPTH = 2 * EACH;
    Address window = ((Address)(FIRST_WINDOW + WINDOW_SHARED) << WINDOW_BITS) + (1ull << (WINDOW_BITS - 1)) + c->shared_address;
    int rows = m.transposed ? DEPTH : Part::COUNT, columns = m.transposed ? Part::COUNT : DEPTH, pieces = 0;
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; column += EACH) {
            Address at = m.transposed ? place(m, row, (first + column) * BYTES) : place(m, first + row, column * BYTES);
            long long t = w * LANES + pieces++ % LANES;
            char* host = checked_access(c, t, pc, window + at, 16, 16, ACCESS_READ | ACCESS_ASYNC);
            const unsigned* piece = (const unsigned*)host;
            if (!piece) return;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                float x = element(piece[i / PER_WORD], i % PER_WORD, KIND);
                if (m.transposed) to.at(column + i, row) = x;
                else to.at(row, column + i) = x;
            }
        }
}

template <class Part>
__device__ void fetch(Context* c, long long w, long long pc, const SharedMatrix& m, int first, int kind, Part& to) {
    switch (kind) {
        case TF32: fetch_as<TF32>(c, w, pc, m, first, to); break;
        case F16: fetch_as<F16>(c, w, pc, m, first, to); break;
        case BF16: fetch_as<BF16>(c, w, pc, m, first, to); break;
        case S8: fetch_as<S8>(c, w, pc, m, first, to); break;
        case U8: fetch_as<U8>(c, w, pc, m, first, to); break;
    }
}

// Products of integers are added to the accumulators as integers: these wrap, or saturate.
__device__ void multiply_integers(unsigned* d, const Rows& a, const Columns& b, int depth, bool saturates) {
    float sums[4 * LANES];
    for (int i = 0; i < 4 * LANES; ++i) sums[i] = 0;
    multiply(sums, a, b, depth);
    for (int i = 0; i < 4 * LANES; ++i) {
        long long exact = (long long)(int)sums[i] + (int)d[i];
        if (saturates) exact = min(max(exact, -0x80000000ll), 0x7fffffffll);
        d[i] = (unsigned)exact;
    }
}

// variant: kind of A | kind of B << 3 | A in registers << 6 | A transposed << 7 | B transposed << 8 |
// product negated << 9 | saturates << 10 | N << 11; words: accumulators, A (4 registers, or 2 of its
// descriptor), the descriptor of B, and whether the accumulators count.
__device__ void wgmma(Context* c, long long w, long long pc, long long variant) {
    int kind = variant & 7, b_kind = variant >> 3 & 7, columns = (int)(variant >> 11), depth = 8 * per_word(kind);
    bool registers = variant >> 6 & 1, negated = variant >> 9 & 1, saturates = variant >> 10 & 1;
    int words = columns / 2, next = words + (registers ? 4 : 2);
    Address a_code = lane_words(c, w, words)[0] | (Address)lane_words(c, w, words + 1)[0] << 32;
    Address b_code = lane_words(c, w, next)[0] | (Address)lane_words(c, w, next + 1)[0] << 32;
    bool accumulates = lane_words(c, w, next + 2)[0];
    Rows a;
    Columns b;
    if (registers) unpack_rows(c, w, words, 4, kind, a);
    else fetch(c, w, pc, shared_matrix(a_code, variant >> 7 & 1), 16 * (int)(w & 3), kind, a);
    for (int row = 0; negated && row < Rows::COUNT; ++row)
        for (int k = 0; k < depth; ++k) a.at(row, k) = -a.at(row, k);
    SharedMatrix b_matrix = shared_matrix(b_code, variant >> 8 & 1);
    for (int column = 0; column < columns; column += Columns::COUNT) {
        unsigned* d = lane_words(c, w, column / 2);
        for (int i = 0; !accumulates && i < 4 * LANES; ++i) d[i] = 0;
        fetch(c, w, pc, b_matrix, column, b_kind, b);
        if (kind < S8) multiply((float*)d, a, b, depth);
        else multiply_integers(d, a, b, depth, saturates);
    }
}
