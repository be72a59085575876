// What a warp does with matrices: ldmatrix, mma.sync and wmma, in float32.
// Products of f16, bf16, tf32 and 8-bit integers are exact in float32; sums are taken in ascending k.

enum Kind { TF32, F16, BF16, S8, U8 };

// The elements of one 32-bit register.
__device__ __forceinline__ int per_word(int kind) { return kind == TF32 ? 1 : kind < S8 ? 2 : 4; }

__device__ __forceinline__ float element(unsigned word, int i, int kind) {
    if (kind == TF32) return __uint_as_float(word & 0xffffe000);  // the GPU ignores the low bits
    if (kind == S8) return (signed char)(word >> 8 * i);
    if (kind == U8) return word >> 8 * i & 0xff;
    unsigned half = word >> 16 * i & 0xffff;
    if (kind == BF16) return __uint_as_float(half << 16);
    float x;
    asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(half));
    return x;
}

// ---- 16 rows of A by 8 columns of B. In every fragment a lane's place is (lane / 4, lane % 4), see
// the PTX manual's figures.

const int MAX_DEPTH = 32;

struct Rows {
    static const int COUNT = 16;
    float x[COUNT][MAX_DEPTH];
    __device__ __forceinline__ float& at(int row, int k) { return x[row][k]; }
};

// Even columns come first: a word of the accumulators has either these or those.
struct Columns {
    static const int COUNT = 8;
    float x[MAX_DEPTH][COUNT];
    __device__ __forceinline__ float& at(int column, int k) { return x[k][(column & 1) * 4 + (column >> 1)]; }
};

// Adds the product to four words of accumulators, each of all lanes. Four rows at once: no sum waits
// for the one before.
__device__ void multiply(float* d, const Rows& a, const Columns& b, int depth) {
    for (int row = 0; row < Rows::COUNT; row += 4) {
        float* even = d + (row & 8 ? 2 * LANES : 0) + 4 * (row & 7);
        float* odd = even + LANES;
        float x[16], y[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) x[i] = even[i], y[i] = odd[i];
        for (int k = 0; k < depth; ++k) {
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                x[i] = __fmaf_rn(a.x[row + i / 4][k], b.x[k][i % 4], x[i]);
                y[i] = __fmaf_rn(a.x[row + i / 4][k], b.x[k][i % 4 + 4], y[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < 16; ++i) even[i] = x[i], odd[i] = y[i];
    }
}

// Rows of A that lie in the registers of the lanes, from a word on.
__device__ void unpack_rows(Context* c, long long w, int word, int words, int kind, Rows& a) {
    int e = per_word(kind);
    for (int lane = 0; lane < LANES; ++lane)
        for (int i = 0; i < words; ++i)
            for (int j = 0; j < e; ++j)
                a.at((lane >> 2) + 8 * (i & 1), e * (4 * (i >> 1) + (lane & 3)) + j) =
                    element(lane_words(c, w, word + i)[lane], j, kind);
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
        Address address = lane_words(c, w, 0)[i] | (Address)lane_words(c, w, 1)[i] << 32;
        int access = ACCESS_OWN | (store ? ACCESS_WRITE : ACCESS_READ);
        at[i] = checked_access(c, w * LANES + i, pc, address, 16, 16, access);
        if (!at[i]) return;
        if (!store) copy_bytes((char*)row[i], at[i], 16);
    }
    for (int m = 0; m < matrices; ++m)
        for (int lane = 0; lane < LANES; ++lane)
            for (int e = 0; e < 2; ++e) {
                int r = transposed ? 2 * (lane & 3) + e : lane >> 2;
                int column = transposed ? lane >> 2 : 2 * (lane & 3) + e;
                unsigned short* half = (unsigned short*)(lane_words(c, w, first_word + m) + lane) + e;
                if (store) row[8 * m + r][column] = *half;
                else *half = row[8 * m + r][column];
            }
    for (int i = 0; store && i < 8 * matrices; ++i) copy_bytes(at[i], (const char*)row[i], 16);
}

// ---- mma.sync.m16n8: words c[4], a[A's], b[half as many] of every lane, d over c

// variant: words of A << 2 | kind
__device__ void mma(Context* c, long long w, long long variant) {
    int kind = variant & 3, words = (int)(variant >> 2), e = per_word(kind);
    Rows a;
    Columns b;
    unpack_rows(c, w, 4, words, kind, a);
    for (int lane = 0; lane < LANES; ++lane)
        for (int i = 0; i < words / 2; ++i)
            for (int j = 0; j < e; ++j)
                b.at(lane >> 2, e * (4 * i + (lane & 3)) + j) = element(lane_words(c, w, 4 + words + i)[lane], j, kind);
    multiply((float*)lane_words(c, w, 0), a, b, 2 * e * words);
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
        Address base = lane_words(c, w, 0)[lane] | (Address)lane_words(c, w, 1)[lane] << 32;
        long long leading = (int)lane_words(c, w, 2)[lane];
        for (int j = 0; j < each; ++j) {
            int row = (lane * each + j) / columns, column = (lane * each + j) % columns;
            long long at = column_major ? column * leading + row : row * leading + column;
            char* host = checked_access(c, w * LANES + lane, pc, base + at * bytes, bytes, bytes, store ? ACCESS_WRITE : ACCESS_READ);
            if (!host) return;
            unsigned* word = lane_words(c, w, first_word + (halves ? j / 2 : j)) + lane;
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
        for (int j = 0; j < a_each; ++j) a[lane * a_each + j] = element(lane_words(c, w, j / e)[lane], j % e, kind);
        for (int j = 0; j < b_each; ++j)
            b[lane * b_each + j] = element(lane_words(c, w, (a_each + j) / e)[lane], j % e, kind);
        for (int j = 0; j < c_each; ++j)
            d[lane * c_each + j] = __uint_as_float(lane_words(c, w, (a_each + b_each) / e + j)[lane]);
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
        for (int j = 0; j < c_each; ++j) lane_words(c, w, j)[lane] = __float_as_uint(d[lane * c_each + j]);
}
