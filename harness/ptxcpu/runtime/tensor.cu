// The matrix instructions ldmatrix, mma.sync and wmma. The products themselves are vector code,
// which codegen/products.py writes.

enum Kind { TF32, F16, BF16, S8, U8 };

// The elements of one 32-bit register.
__device__ __forceinline__ int per_word(int kind) { return kind == TF32 ? 1 : kind < S8 ? 2 : 4; }

// ---- 16 rows of A times 8 columns of B. In every fragment a lane's place is (lane / 4, lane % 4);
// see the figures in the PTX manual. A word of all lanes holds 8 rows (or columns of B), one after
// the other, with 16 bytes of the inner dimension each.

const int TILE_COLUMNS = 8;

// Rows of A as numbers, in the layout of products.py: for each step of the inner dimension, 16 rows,
// each four times.
const int STEPS = 16, GROUP = 4;

struct Rows {
    unsigned x[STEPS][64];
    unsigned exponents[STEPS / GROUP][64];
    long long is_ordinary;  // whether the numbers are in the range in which floats suffice
};

// raw: words of A, alternately those of the first 8 rows and those of the others
extern "C" __device__ void host_unpack_rows(long long kind, Rows* to, const unsigned* raw, long long pairs,
                                            long long negated);

// Adds the product with 8 columns to four words of accumulators, each of all lanes.
extern "C" __device__ void host_multiply(long long kind, unsigned* d, const Rows* a, const unsigned* raw,
                                         long long pairs, long long saturates);

// ---- ldmatrix and stmatrix: 8x8 matrices of 16-bit elements; lane 8m+r holds the address of row r
// of matrix m. variant: matrices << 1 | transposed; address, data: the first words of these

__device__ __noinline__ void move_matrix(Context* c, long long w, long long pc, long long variant, int address, int data, bool store) {
    int rows = 8 * (int)(variant >> 1);
    bool transposed = variant & 1;
    char* at[LANES];
    for (int i = 0; i < rows; ++i) {
        Address row = lane_words(c, w, address)[i] | (Address)lane_words(c, w, address + 1)[i] << 32;
        int access = ACCESS_OWN | (store ? ACCESS_WRITE : ACCESS_READ);
        at[i] = checked_access(c, w * LANES + i, pc, row, 16, 16, access);
        if (!at[i]) return;
    }
    for (int i = 0; i < rows; ++i) {
        unsigned* words = lane_words(c, w, data + i / 8);  // two elements of each lane, rows of four lanes
        char* row = (char*)(words + i % 8 * 4);
        if (!transposed) {
            copy_bytes(store ? at[i] : row, store ? row : at[i], 16);
            continue;
        }
        unsigned short *column = (unsigned short*)words + i % 8, *host = (unsigned short*)at[i];
        for (int k = 0; k < 8; ++k) {
            if (store) host[k] = column[8 * k];
            else column[8 * k] = host[k];
        }
    }
}

// ---- mma.sync.m16n8: words of accumulators, of A and of B, half as many

// One product of a batch: where its operands lie in the lane buffer. `uses_sums` is the word that says
// whether the accumulators count (wgmma), or negative (mma.sync). A negative pc ends a batch. Or, if
// `uses_sums` is LOADS, an ldmatrix: `a` is its address, `sums` its result.
struct Product {
    int pc, variant, sums, a, b, uses_sums;
};

// variant: kind of A | kind of B << 3 | saturates << 6 | words of A << 7; rows: A, unpacked already if
// it is the same as before
__device__ void mma(Context* c, long long w, const Product* p, Rows* rows, bool same_rows) {
    int pairs = p->variant >> 8;
    if (!same_rows) host_unpack_rows(p->variant & 7, rows, lane_words(c, w, p->a), pairs, 0);
    host_multiply(p->variant >> 3 & 7, lane_words(c, w, p->sums), rows, lane_words(c, w, p->b), pairs,
                  p->variant >> 6 & 1);
}

// ---- mma.sync in double precision: two words each of A, B and C, which D replaces from word 0 on.
// variant: rows of A / 8 | steps of 4 of the inner dimension << 2

__device__ double lane_double(Context* c, long long w, int number, int lane) {
    unsigned long long low = lane_words(c, w, 2 * number)[lane], high = lane_words(c, w, 2 * number + 1)[lane];
    return __longlong_as_double((long long)(high << 32 | low));
}

__device__ __noinline__ void mma_double(Context* c, long long w, long long variant) {
    int halves = (int)variant & 3, steps = (int)(variant >> 2), b = halves * steps, sums = b + steps;
    double d[4][LANES];
    for (int i = 0; i < 2 * halves; ++i)
        for (int lane = 0; lane < LANES; ++lane) {
            double sum = lane_double(c, w, sums + i, lane);
            int column = lane % 4 * 2 + i % 2;
            for (int k = 0; k < 4 * steps; ++k)
                sum = fma(lane_double(c, w, k / 4 * halves + i / 2, lane / 4 * 4 + k % 4),
                          lane_double(c, w, b + k / 4, column * 4 + k % 4), sum);
            d[i][lane] = sum;
        }
    for (int i = 0; i < 2 * halves; ++i)
        for (int lane = 0; lane < LANES; ++lane) {
            unsigned long long bits = (unsigned long long)__double_as_longlong(d[i][lane]);
            lane_words(c, w, 2 * i)[lane] = (unsigned)bits;
            lane_words(c, w, 2 * i + 1)[lane] = (unsigned)(bits >> 32);
        }
}

// ---- wmma: PTX does not specify which lane holds which element.

struct WmmaShape { int m, n, k; };

__device__ __forceinline__ WmmaShape wmma_shape(long long code) {
    WmmaShape s;
    s.m = code == 1 ? 8 : code == 2 ? 32 : 16;
    s.n = code == 1 ? 32 : code == 2 ? 8 : 16;
    s.k = code == 3 ? 8 : 16;
    return s;
}

struct WmmaPlace { int row, column; };

// The place of a lane's j-th element of a matrix. which: 0 for a, 1 for b, 2 for c. In tiles of 16 x 16,
// lanes hold what they hold for mma.sync, because libraries rely on it. Otherwise the elements of a lane
// are neighbours, row by row.
__device__ __forceinline__ WmmaPlace wmma_place(WmmaShape s, int which, int lane, int j) {
    int rows = which == 1 ? s.k : s.m, columns = which == 0 ? s.k : s.n, number = lane * (rows * columns / LANES) + j;
    WmmaPlace place;
    if (s.m != s.n) {
        place.row = number / columns, place.column = number % columns;
        return place;
    }
    bool single = s.k == 8 && which != 2;  // one element in a word
    int inner = single ? lane % 4 : lane % 4 * 2 + j % 2, word = single ? j : j / 2;
    // Words alternate between the halves of rows (of columns in b), or of the inner dimension.
    int outer = lane / 4 + (which == 1 ? word / 2 : word % 2) * 8;
    inner += (which == 1 ? word % 2 : word / 2) * (single ? 4 : 8);
    place.row = which == 1 ? inner : outer, place.column = which == 1 ? outer : inner;
    return place;
}

// variant: shape | which (a, b, c) << 2 | column-major << 4 | 16-bit elements << 5; the address is
// in words 0 and 1, the leading dimension in word 2, and the data to store after them.
__device__ __noinline__ void wmma_move(Context* c, long long w, long long pc, long long variant, bool store) {
    WmmaShape s = wmma_shape(variant & 3);
    int which = variant >> 2 & 3, column_major = variant >> 4 & 1, halves = variant >> 5 & 1;
    int rows = which == 1 ? s.k : s.m, columns = which == 0 ? s.k : s.n, each = rows * columns / LANES;
    int bytes = halves ? 2 : 4, first_word = store ? 3 : 0;
    // Machine code accesses two neighbouring accumulators at once, so their address is a multiple of 8.
    bool pairs = which == 2 && !column_major && s.m >= s.n;
    int width = pairs ? 2 * bytes : bytes;
    // It reads eight neighbouring halves of A or B at once from shared memory (ldmatrix), and two from elsewhere.
    bool is_shared = window_of(lane_words(c, w, 0)[0] | (Address)lane_words(c, w, 1)[0] << 32) == WINDOW_SHARED;
    int together = !halves ? bytes : is_shared ? 16 : 4;
    for (int lane = 0; lane < LANES; ++lane) {
        Address base = lane_words(c, w, 0)[lane] | (Address)lane_words(c, w, 1)[lane] << 32;
        long long leading = (int)lane_words(c, w, 2)[lane];
        char* second = 0;
        for (int j = 0; j < each; ++j) {
            WmmaPlace p = wmma_place(s, which, lane, j);
            long long at = column_major ? p.column * leading + p.row : p.row * leading + p.column;
            Address line = base + (column_major ? p.column : p.row) * leading * bytes;
            if (line & together - 1) {
                checked_access(c, w * LANES + lane, pc, line, together, together, ACCESS_READ);
                return;
            }
            char* host = second;
            if (!pairs || j % 2 == 0)
                host = checked_access(c, w * LANES + lane, pc, base + at * bytes, width, width, store ? ACCESS_WRITE : ACCESS_READ);
            if (!host) return;
            second = host + bytes;
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

// Return where an element of a tile lies in the words of mma.sync: in a matrix of 16 or 8 rows, and
// in the accumulators.
__device__ __forceinline__ int operand_place(int row, int k, int rows, int each) {
    int word = k / (4 * each) * (rows / 8) + row / 8;
    return (word * LANES + row % 8 * 4) * each + k % (4 * each);
}

__device__ __forceinline__ int accumulator_place(int row, int column) {
    return (row / 8 * 2 + column % 2) * LANES + row % 8 * 4 + column / 2;
}

// The j-th element of a lane, which has this number of elements, with so many in a word. to: in elements
__device__ __forceinline__ void move_element(Context* c, long long w, int word, int j, int lane, int each, unsigned* words,
                                             int to) {
    unsigned value = lane_words(c, w, word + j / each)[lane];
    if (each == 1) words[to] = value;
    else ((unsigned short*)words)[to] = (unsigned short)(value >> 16 * (j % each));
}

// variant: shape | kind << 2; words of A, of B, and of C, which D replaces from word 0 on. Tiles of
// 16 x 8 are multiplied as mma.sync does it, with rows of zeros where there are fewer.
__device__ __noinline__ void wmma(Context* c, long long w, long long variant) {
    WmmaShape s = wmma_shape(variant & 3);
    int kind = variant >> 2, e = per_word(kind), pairs = s.k / (4 * e);
    int a_each = s.m * s.k / LANES, b_each = s.k * s.n / LANES, c_each = s.m * s.n / LANES;
    unsigned raw_a[2][4 * LANES], raw_b[4][2 * LANES], d[2][4][4 * LANES];
    for (int i = 0; i < 2 * 4 * LANES; ++i) raw_a[i / (4 * LANES)][i % (4 * LANES)] = 0;
    for (int i = 0; i < 2 * 4 * 4 * LANES; ++i) d[i / (16 * LANES)][i / (4 * LANES) % 4][i % (4 * LANES)] = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        for (int j = 0; j < a_each; ++j) {
            WmmaPlace p = wmma_place(s, 0, lane, j);
            move_element(c, w, 0, j, lane, e, raw_a[p.row / 16], operand_place(p.row % 16, p.column, 16, e));
        }
        for (int j = 0; j < b_each; ++j) {
            WmmaPlace p = wmma_place(s, 1, lane, j);
            move_element(c, w, a_each / e, j, lane, e, raw_b[p.column / 8], operand_place(p.column % 8, p.row, 8, e));
        }
        for (int j = 0; j < c_each; ++j) {
            WmmaPlace p = wmma_place(s, 2, lane, j);
            move_element(c, w, (a_each + b_each) / e, j, lane, 1, d[p.row / 16][p.column / 8],
                         accumulator_place(p.row % 16, p.column % 8));
        }
    }
    for (int row = 0; row < s.m; row += 16) {
        Rows a;
        host_unpack_rows(kind, &a, raw_a[row / 16], pairs, 0);
        for (int column = 0; column < s.n; column += 8)
            host_multiply(kind, d[row / 16][column / 8], &a, raw_b[column / 8], pairs, 0);
    }
    for (int lane = 0; lane < LANES; ++lane)
        for (int j = 0; j < c_each; ++j) {
            WmmaPlace p = wmma_place(s, 2, lane, j);
            lane_words(c, w, j)[lane] = d[p.row / 16][p.column / 8][accumulator_place(p.row % 16, p.column % 8)];
        }
}
