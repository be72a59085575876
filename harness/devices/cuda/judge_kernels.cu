// The judge's own kernels: drawing inputs, poisoning C, Freivalds' check.

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

// SplitMix64's finaliser (Steele, Lea, Flood 2014): a counter and a seed to 64 random bits.
__device__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// What inputs are drawn from: U(-1, 1) in steps of 2^-23, or that with a power of two from 2^-10 to
// 2^10 for every 8 rows or columns, or for one row or column in 64, or for each from some place on;
// or four elements are 2^20; or the magnitude of that.
enum Scaling {
    PLAIN,
    ROW_GROUPS,
    COLUMN_GROUPS,
    LONE_ROWS,
    LONE_COLUMNS,
    LONE_ELEMENTS,
    CHANGING_ROWS,
    CHANGING_COLUMNS,
    POSITIVE
};

// Whether this is a random place in an eighth of a line of so many elements.
__device__ bool in_eighth(uint64_t at, uint64_t length, uint64_t eighth, uint64_t random) {
    uint64_t from = eighth * length / 8, size = (eighth + 1) * length / 8 - from;
    return size && at == from + random % size;
}

// Whether this is the one large element of its quarter of the matrix: as problem/cases.py draws
// them, in eighths of the rows and of the columns that are no other's.
__device__ bool is_lone(uint64_t row, uint64_t column, uint64_t rows, uint64_t columns,
                        uint64_t seed) {
    int lower = row >= rows / 2, right = column >= columns / 2;
    int quarter = 2 * lower + (lower ^ right);
    uint64_t turns = mix(~seed), place = mix(~seed + (quarter + 1) * 0x9e3779b97f4a7c15ULL);
    return in_eighth(row, rows, 4 * lower + (quarter ^ turns % 4), place >> 32) &&
           in_eighth(column, columns, 4 * right + (quarter ^ turns / 4 % 4), place & 0xffffffff);
}

// Whether this lies behind a random place that leaves an eighth of the line on either side, as
// problem/cases.py draws them.
__device__ bool behind_place(uint64_t at, uint64_t length, uint64_t random) {
    uint64_t least = (length + 7) / 8;
    return at >= least + random % (length - length / 8 + 1 - least);
}

__device__ float drawn(uint64_t i, uint64_t seed, uint64_t count, int columns, int scaling) {
    uint64_t bits = mix(seed + (i + 1) * 0x9e3779b97f4a7c15ULL);
    float x = (float)(int)(bits >> 40) * 0x1p-23f - 1.0f;
    if (scaling == PLAIN) return x;
    if (scaling == POSITIVE) return fabsf(x);
    uint64_t row = i / columns, column = i % columns, rows = count / columns;
    if (scaling == LONE_ELEMENTS) return is_lone(row, column, rows, columns, seed) ? 0x1p20f : x;
    bool by_row = scaling == ROW_GROUPS || scaling == LONE_ROWS || scaling == CHANGING_ROWS;
    bool groups = scaling == ROW_GROUPS || scaling == COLUMN_GROUPS;
    bool lone = scaling == LONE_ROWS || scaling == LONE_COLUMNS;
    uint64_t line = by_row ? row : column, along = by_row ? column : row;
    uint64_t length = by_row ? columns : rows;
    uint64_t chance = mix(~seed + (groups ? line / 8 : line) * 0x9e3779b97f4a7c15ULL);
    if (lone && chance / 21 % 64) return x;
    if (!groups && !lone && !behind_place(along, length, chance >> 32)) return x;
    return ldexpf(x, (int)(chance % 21) - 10);
}

extern "C" __global__ void draw(float* x, uint64_t count, uint64_t seed, int columns, int scaling) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride)
        x[i] = drawn(i, seed, count, columns, scaling);
}

// How many elements are no longer what was drawn.
extern "C" __global__ void count_changed(const float* x, uint64_t count, uint64_t seed, int columns,
                                         int scaling, uint64_t* changed) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x, found = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride)
        found +=
            __float_as_uint(x[i]) != __float_as_uint(drawn(i, seed, count, columns, scaling));
    if (found) atomicAdd(changed, found);
}

extern "C" __global__ void fill(uint32_t* x, uint64_t count, uint32_t bits) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride)
        x[i] = bits;
}

// How many words are no longer what they were set to; then all of them are again.
extern "C" __global__ void restore(uint32_t* x, uint64_t count, uint32_t bits, uint64_t* changed) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x, found = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride) {
        found += x[i] != bits;
        x[i] = bits;
    }
    if (found) atomicAdd(changed, found);
}

// +1 or -1 with equal chance.
extern "C" __global__ void draw_signs(double* x, uint64_t count, uint64_t seed) {
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < count) x[i] = mix(seed + (i + 1) * 0x9e3779b97f4a7c15ULL) >> 63 ? 1.0 : -1.0;
}

__device__ double sum_of_block(double value) {
    __shared__ double partial[32];
    for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0;
    if (threadIdx.x < 32)
        for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

// y[row] = matrix[row] · x in float64: one block of 256 threads a row.
extern "C" __global__ void multiply(const float* matrix, const double* x, double* y, int columns) {
    const float* row = matrix + (uint64_t)blockIdx.x * columns;
    double sum = 0.0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * x[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// y[row] = ‖matrix[row]‖² in float64: one block of 256 threads a row.
extern "C" __global__ void square_norms(const float* matrix, double* y, int columns) {
    const float* row = matrix + (uint64_t)blockIdx.x * columns;
    double sum = 0.0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * row[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// The error of one 16×16 block of C a thread block, as problem/reference.py defines it, in float64.
// Which block is drawn from the seed; edge blocks are smaller.
extern "C" __global__ void block_errors(const float* A, const float* B, const float* C, int M,
                                        int N, int K, uint64_t seed, double* errors) {
    uint64_t row_blocks = (M + 15) / 16, column_blocks = (K + 15) / 16;
    uint64_t chosen = mix(seed + blockIdx.x * 0x9e3779b97f4a7c15ULL) % (row_blocks * column_blocks);
    uint64_t row = chosen / column_blocks * 16 + threadIdx.x / 16;
    uint64_t column = chosen % column_blocks * 16 + threadIdx.x % 16;
    double R = 0.0, squares_a = 0.0, squares_b = 0.0, difference = 0.0;
    if (row < M && column < K) {
        for (int n = 0; n < N; n++) {
            double a = A[row * N + n], b = B[(uint64_t)n * K + column];
            R += a * b;
            squares_a += a * a;
            squares_b += b * b;
        }
        difference = C[row * K + column] - R;
    }
    double error = sum_of_block(difference * difference);
    __syncthreads();
    double size_R = sum_of_block(R * R);
    __syncthreads();
    double size_S = sum_of_block(squares_a * squares_b / N);
    if (threadIdx.x == 0)
        errors[blockIdx.x] = error == 0.0 ? 0.0 : sqrt(error / fmax(size_R, size_S));
}
