// wgmma: warp w of four computes rows 16w to 16w+15 of the 64 x N product, for which it needs
// no other warp: its part of A, all of B, its accumulators.

// A matrix in shared memory as its 64-bit descriptor gives it.
struct SharedMatrix {
    Address start, leading, stride;  // bytes
    int swizzle;                     // bytes of a swizzled row: 0, 32, 64 or 128
    bool transposed;                 // the dimension of rows (or columns of B) lies side by side
};

__device__ __forceinline__ SharedMatrix shared_matrix(Address descriptor, bool transposed) {
    SharedMatrix m;
    int mode = (int)(descriptor >> 62);
    m.start = (descriptor & 0x3fff) << 4;
    m.leading = (descriptor >> 16 & 0x3fff) << 4;
    m.stride = (descriptor >> 32 & 0x3fff) << 4;
    m.swizzle = mode == 0 ? 0 : mode == 1 ? 128 : mode == 2 ? 64 : 32;
    m.transposed = transposed;
    return m;
}

// The shared-memory address of element (row, k): core matrices of 8 rows of 16 bytes, the 16-byte
// pieces of each row exchanged by exclusive or with the row's number.
__device__ Address place(const SharedMatrix& m, int row, int k, int bytes) {
    Address at = m.start;
    int across = m.swizzle ? m.swizzle : 16;  // bytes side by side in one atom of 8 rows
    int inner = m.transposed ? row : k, outer = m.transposed ? k : row;
    int column = inner * bytes;
    at += column % across + outer % 8 * across;
    if (m.transposed) {
        Address along = m.swizzle ? m.leading : m.stride, over = m.swizzle ? m.stride : m.leading;
        at += column / across * along + outer / 8 * over;
    } else {
        at += column / across * m.leading + outer / 8 * m.stride;
    }
    int bits = m.swizzle == 128 ? 7 : m.swizzle == 64 ? 3 : m.swizzle == 32 ? 1 : 0;
    return at ^ ((at >> 7 & bits) << 4);
}

// Where n bytes from element (row, k) on lie on the host, or null after a fault.
__device__ char* locate_shared(Context* c, long long t, long long pc, const SharedMatrix& m, int row, int k,
                               int element_bytes, int n) {
    Address address = ((Address)WINDOW_SHARED << WINDOW_BITS) + (1ull << (WINDOW_BITS - 1));
    address += c->shared_address + place(m, row, k, element_bytes);
    return checked_access(c, t, pc, address, n, n, ACCESS_READ);
}

__device__ float fetch(Context* c, long long t, long long pc, const SharedMatrix& m, int row, int k, int kind) {
    int bytes = kind == TF32 ? 4 : 2;
    char* host = locate_shared(c, t, pc, m, row, k, bytes, bytes);
    if (!host) return 0;
    return element(kind == TF32 ? *(unsigned*)host : *(unsigned short*)host, 0, kind);
}

// Four neighbouring 8-bit elements.
__device__ unsigned fetch_bytes(Context* c, long long t, long long pc, const SharedMatrix& m, int row, int k) {
    char* host = locate_shared(c, t, pc, m, row, k, 1, 4);
    return host ? *(unsigned*)host : 0;
}

// variant: kind | A in registers << 2 | A transposed << 3 | B transposed << 4 | A negated << 5 |
// B negated << 6 | N << 8; words: accumulators, A (4 registers, or 2 of its descriptor), the
// descriptor of B, and whether the accumulators count.
__device__ void wgmma(Context* c, long long w, long long pc, long long variant) {
    int kind = variant & 3, columns = variant >> 8 & 511, e = per_word(kind), depth = 8 * e;
    bool registers = variant >> 2 & 1;
    int words = columns / 2, next = words + (registers ? 4 : 2);
    float a[16][16], b[16][8], d[16][8];
    float sign = (variant >> 5 & 1) != (variant >> 6 & 1) ? -1.0f : 1.0f;
    Address a_code = mail(c, w, words)[0] | (Address)mail(c, w, words + 1)[0] << 32;
    Address b_code = mail(c, w, next)[0] | (Address)mail(c, w, next + 1)[0] << 32;
    bool accumulates = mail(c, w, next + 2)[0];
    SharedMatrix a_matrix = shared_matrix(a_code, variant >> 3 & 1);
    SharedMatrix b_matrix = shared_matrix(b_code, variant >> 4 & 1);
    int first_row = 16 * (int)(w & 3);
    for (int lane = 0; lane < LANES; ++lane)
        for (int word = 0; word < 4; ++word)
            for (int i = 0; i < e; ++i) {
                int row = (lane >> 2) + 8 * (word & 1), k = e * (4 * (word >> 1) + (lane & 3)) + i;
                a[row][k] = sign * (registers ? element(mail(c, w, words + word)[lane], i, kind)
                                              : fetch(c, w * LANES + lane, pc, a_matrix, first_row + row, k, kind));
            }
    for (int column = 0; column < columns; column += 8) {
        for (int k = 0; k < depth; ++k)
            for (int n = 0; n < 8; ++n)
                b[k][n] = fetch(c, w * LANES + (k * 8 + n) % LANES, pc, b_matrix, column + n, k, kind);
        for (int lane = 0; lane < LANES; ++lane)
            for (int i = 0; i < 4; ++i)
                d[(lane >> 2) + 8 * (i >> 1)][2 * (lane & 3) + (i & 1)] =
                    accumulates ? __uint_as_float(mail(c, w, column / 2 + i)[lane]) : 0.0f;
        for (int m = 0; m < 16; ++m)
            for (int k = 0; k < depth; ++k) {
#pragma unroll
                for (int n = 0; n < 8; ++n) d[m][n] = __fmaf_rn(a[m][k], b[k][n], d[m][n]);
            }
        for (int lane = 0; lane < LANES; ++lane)
            for (int i = 0; i < 4; ++i)
                mail(c, w, column / 2 + i)[lane] =
                    __float_as_uint(d[(lane >> 2) + 8 * (i >> 1)][2 * (lane & 3) + (i & 1)]);
    }
}

// 8-bit integers into s32. Sums wrap, or saturate: then they are exact until the end.
__device__ int byte_of(unsigned word, int i, bool is_signed) {
    return is_signed ? (int)(signed char)(word >> 8 * i) : (int)(word >> 8 * i & 255);
}

// variant: A signed | B signed << 1 | A in registers << 2 | saturates << 3 | N << 8; words as for
// wgmma. Both matrices have k side by side: only 16-bit elements can be transposed.
__device__ void wgmma_integer(Context* c, long long w, long long pc, long long variant) {
    const int DEPTH = 32;
    bool a_signed = variant & 1, b_signed = variant >> 1 & 1, registers = variant >> 2 & 1;
    bool saturates = variant >> 3 & 1;
    int columns = variant >> 8 & 511, words = columns / 2, next = words + (registers ? 4 : 2);
    int a[16][DEPTH], b[DEPTH][8];
    Address a_code = mail(c, w, words)[0] | (Address)mail(c, w, words + 1)[0] << 32;
    Address b_code = mail(c, w, next)[0] | (Address)mail(c, w, next + 1)[0] << 32;
    bool accumulates = mail(c, w, next + 2)[0];
    SharedMatrix a_matrix = shared_matrix(a_code, false), b_matrix = shared_matrix(b_code, false);
    int first_row = 16 * (int)(w & 3);
    for (int lane = 0; lane < LANES; ++lane)
        for (int word = 0; word < 4; ++word) {
            int row = (lane >> 2) + 8 * (word & 1), k = 4 * (4 * (word >> 1) + (lane & 3));
            unsigned four = registers ? mail(c, w, words + word)[lane]
                                      : fetch_bytes(c, w * LANES + lane, pc, a_matrix, first_row + row, k);
            for (int i = 0; i < 4; ++i) a[row][k + i] = byte_of(four, i, a_signed);
        }
    for (int column = 0; column < columns; column += 8) {
        for (int k = 0; k < DEPTH; k += 4)
            for (int n = 0; n < 8; ++n) {
                unsigned four = fetch_bytes(c, w * LANES + (2 * k + n) % LANES, pc, b_matrix, column + n, k);
                for (int i = 0; i < 4; ++i) b[k + i][n] = byte_of(four, i, b_signed);
            }
        for (int m = 0; m < 16; ++m) {
            int sum[8];  // of 32 products: far from the ends of an int
            for (int n = 0; n < 8; ++n) sum[n] = 0;
            for (int k = 0; k < DEPTH; ++k) {
#pragma unroll
                for (int n = 0; n < 8; ++n) sum[n] += a[m][k] * b[k][n];
            }
            for (int n = 0; n < 8; ++n) {
                int lane = 4 * (m & 7) + (n >> 1), i = 2 * (m >> 3) + (n & 1);
                unsigned* d = mail(c, w, column / 2 + i) + lane;
                long long exact = (long long)sum[n] + (accumulates ? (int)*d : 0);
                if (saturates) exact = min(max(exact, -0x80000000ll), 0x7fffffffll);
                *d = (unsigned)exact;
            }
        }
    }
}
