// Matrix fragments of a warp: ldmatrix, mma.sync, wmma and wgmma, in float32.
// Products of f16, bf16 and tf32 are exact in float32; sums are taken in ascending k.

enum Kind { TF32, F16, BF16 };

// The elements of one 32-bit register: one tf32 or two halves.
__device__ int per_word(int kind) { return kind == TF32 ? 1 : 2; }

__device__ float element(unsigned word, int i, int kind) {
    if (kind == TF32) return __uint_as_float(word & 0xffffe000);  // the GPU ignores the low bits
    unsigned half = word >> 16 * i & 0xffff;
    if (kind == BF16) return __uint_as_float(half << 16);
    float x;
    asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(half));
    return x;
}

// ---- ldmatrix and stmatrix: 8x8 matrices of 16-bit elements; lane 8m+r holds the address of row r
// of matrix m. variant: matrices << 1 | transposed

__device__ void load_matrix(Context* c, long long w, long long pc, long long variant, bool store) {
    int matrices = (int)(variant >> 1);
    bool transposed = variant & 1;
    unsigned short row[LANES][8];
    int first_word = store ? 2 : 0;  // stmatrix publishes its data behind the address
    char* at[LANES];
    for (int i = 0; i < 8 * matrices; ++i) {
        Address address = mail(c, w, 0)[i] | (Address)mail(c, w, 1)[i] << 32;
        at[i] = checked_access(c, w * LANES + i, pc, address, 16, 16, store ? ACCESS_WRITE : ACCESS_READ);
        if (!at[i]) return;
        if (c->counts) count_row(c, pc, i, address);
        if (!store) copy_bytes((char*)row[i], at[i], 16);
    }
    if (c->counts) count_rows(c, pc, 8 * matrices, store);
    for (int m = 0; m < matrices; ++m)
        for (int lane = 0; lane < LANES; ++lane)
            for (int e = 0; e < 2; ++e) {
                int r = transposed ? 2 * (lane & 3) + e : lane >> 2;
                int column = transposed ? lane >> 2 : 2 * (lane & 3) + e;
                unsigned short* half = (unsigned short*)(mail(c, w, first_word + m) + lane) + e;
                if (store) row[8 * m + r][column] = *half;
                else *half = row[8 * m + r][column];
            }
    for (int i = 0; store && i < 8 * matrices; ++i) copy_bytes(at[i], (const char*)row[i], 16);
}

// ---- mma.sync.m16n8: words a[A_WORDS], b[A_WORDS / 2], c[4] of every lane, d over c
// In every fragment a lane's place is (lane / 4, lane % 4), see the PTX manual's figures.

template <int KIND, int A_WORDS>
__device__ void multiply_m16n8(Context* c, long long w) {
    const int E = KIND == TF32 ? 1 : 2, K = 2 * E * A_WORDS;
    float a[16][K], b[K][8], d[16][8];
    for (int lane = 0; lane < LANES; ++lane) {
        int g = lane >> 2, q = lane & 3;
        for (int word = 0; word < A_WORDS; ++word)
            for (int e = 0; e < E; ++e)
                a[g + 8 * (word & 1)][E * (4 * (word >> 1) + q) + e] = element(mail(c, w, word)[lane], e, KIND);
        for (int word = 0; word < A_WORDS / 2; ++word)
            for (int e = 0; e < E; ++e)
                b[E * (4 * word + q) + e][g] = element(mail(c, w, A_WORDS + word)[lane], e, KIND);
        for (int i = 0; i < 4; ++i)
            d[g + 8 * (i >> 1)][2 * q + (i & 1)] = __uint_as_float(mail(c, w, A_WORDS * 3 / 2 + i)[lane]);
    }
    for (int m = 0; m < 16; ++m)
        for (int k = 0; k < K; ++k) {
#pragma unroll
            for (int n = 0; n < 8; ++n) d[m][n] = __fmaf_rn(a[m][k], b[k][n], d[m][n]);
        }
    for (int lane = 0; lane < LANES; ++lane)
        for (int i = 0; i < 4; ++i)
            mail(c, w, i)[lane] = __float_as_uint(d[(lane >> 2) + 8 * (i >> 1)][2 * (lane & 3) + (i & 1)]);
}

// variant: words of A << 2 | kind
__device__ void mma(Context* c, long long w, long long variant) {
    switch (variant) {
        case 2 << 2 | TF32: multiply_m16n8<TF32, 2>(c, w); break;
        case 4 << 2 | TF32: multiply_m16n8<TF32, 4>(c, w); break;
        case 2 << 2 | F16: multiply_m16n8<F16, 2>(c, w); break;
        case 4 << 2 | F16: multiply_m16n8<F16, 4>(c, w); break;
        case 2 << 2 | BF16: multiply_m16n8<BF16, 2>(c, w); break;
        case 4 << 2 | BF16: multiply_m16n8<BF16, 4>(c, w); break;
    }
}

// ---- wmma: which lane holds which element is the device's own affair. Here lane l holds the
// elements l·R·C/32 ... of the R x C matrix, row by row.

struct WmmaShape { int m, n, k; };

__device__ __forceinline__ WmmaShape wmma_shape(long long code) {
    WmmaShape s;
    s.m = code == 1 ? 8 : code == 2 ? 32 : 16;
    s.n = code == 1 ? 32 : code == 2 ? 8 : 16;
    s.k = code == 3 ? 8 : 16;
    return s;
}

// variant: shape | which (a, b, c) << 2 | column-major << 4 | 16-bit elements << 5; the address is
// in words 0 and 1, the leading dimension in word 2, and what is stored behind them.
__device__ void wmma_move(Context* c, long long w, long long pc, long long variant, bool store) {
    WmmaShape s = wmma_shape(variant & 3);
    int which = variant >> 2 & 3, column_major = variant >> 4 & 1, halves = variant >> 5 & 1;
    int rows = which == 1 ? s.k : s.m, columns = which == 0 ? s.k : s.n, each = rows * columns / LANES;
    int bytes = halves ? 2 : 4, first_word = store ? 3 : 0;
    for (int lane = 0; lane < LANES; ++lane) {
        Address base = mail(c, w, 0)[lane] | (Address)mail(c, w, 1)[lane] << 32;
        long long leading = (int)mail(c, w, 2)[lane];
        for (int j = 0; j < each; ++j) {
            int row = (lane * each + j) / columns, column = (lane * each + j) % columns;
            long long at = column_major ? column * leading + row : row * leading + column;
            char* host = checked_access(c, w * LANES + lane, pc, base + at * bytes, bytes, bytes, store ? ACCESS_WRITE : ACCESS_READ);
            if (!host) return;
            unsigned* word = mail(c, w, first_word + (halves ? j / 2 : j)) + lane;
            if (halves) {
                unsigned short* half = (unsigned short*)word + j % 2;
                if (store) *(unsigned short*)host = *half; else *half = *(unsigned short*)host;
            } else {
                if (store) *(unsigned*)host = *word; else *word = *(unsigned*)host;
            }
        }
    }
}

// variant: shape | kind << 2; words of A, of B, and of C, which D replaces from word 0 on
__device__ void wmma(Context* c, long long w, long long variant) {
    WmmaShape s = wmma_shape(variant & 3);
    int kind = variant >> 2, e = per_word(kind);
    int a_each = s.m * s.k / LANES, b_each = s.k * s.n / LANES, c_each = s.m * s.n / LANES;
    float a[32 * 16], b[16 * 32], d[32 * 32];
    for (int lane = 0; lane < LANES; ++lane) {
        for (int j = 0; j < a_each; ++j) a[lane * a_each + j] = element(mail(c, w, j / e)[lane], j % e, kind);
        for (int j = 0; j < b_each; ++j)
            b[lane * b_each + j] = element(mail(c, w, (a_each + j) / e)[lane], j % e, kind);
        for (int j = 0; j < c_each; ++j)
            d[lane * c_each + j] = __uint_as_float(mail(c, w, (a_each + b_each) / e + j)[lane]);
    }
    for (int m = 0; m < s.m; ++m)
        for (int k = 0; k < s.k; ++k)
            for (int n = 0; n < s.n; n += 8) {
                float* row = d + m * s.n + n;
                float* other = b + k * s.n + n;
#pragma unroll
                for (int i = 0; i < 8; ++i) row[i] = __fmaf_rn(a[m * s.k + k], other[i], row[i]);
            }
    for (int lane = 0; lane < LANES; ++lane)
        for (int j = 0; j < c_each; ++j) mail(c, w, j)[lane] = __float_as_uint(d[lane * c_each + j]);
}

// ---- wgmma: warp w of four computes rows 16w to 16w+15 of the 64 x N product, for which it needs
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
    return checked_access(c, t, pc, address + place(m, row, k, element_bytes), n, n, ACCESS_READ);
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
