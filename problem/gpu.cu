// The problem's own kernels on a GPU: they draw A and B, and check C.
//
// `drawn` is the function that problem/inputs.py defines; tests/problem/test_gpu_kernels.py compares
// the two, bit for bit. The enumerations have the order of inputs.py.

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

#define GOLDEN 0x9e3779b97f4a7c15ULL
#define STREAM 0xd1b54a32d192ed03ULL

enum Distribution {
    UNIFORM,
    NORMAL,
    POSITIVE,
    INTEGERS,
    ODD_INTEGERS,
    SIGNS,
    LEVELS,
    CONSTANT,
    ONES,
    TWOS,
    NEIGHBOURS,
    OPPOSITES,
    SPIKES
};

enum Structure {
    DENSE,
    ZERO,
    SPARSE,
    ZERO_LINES,
    ONE_HOT,
    IDENTITY,
    PERMUTATION,
    TRIANGULAR,
    BANDED,
    RANK_ONE,
    REPEATED_LINES,
    WITHOUT_SPIKES,
    REPEATED_PARTS
};

enum Magnitude {
    NONE,
    MATRIX,
    GROUPS,
    LINES,
    LONE_LINES,
    INNER,
    INNER_INVERSE,
    CHANGING,
    RECTANGLES,
    ELEMENTS
};

// How one matrix is drawn. This is `Draw` in inputs.py.
struct Recipe {
    int distribution, structure, magnitude, low, high, by_column, outliers;
    float outlier;
    uint64_t seed, shared_seed;
};

// Returns 64 random bits for a counter and a seed: the finaliser of SplitMix64 (Steele, Lea and
// Flood, 2014).
__device__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

__device__ uint64_t word(uint64_t number, uint64_t seed) {
    return mix(seed + (number + 1) * GOLDEN);
}

__device__ uint64_t stream(uint64_t seed, int number) { return seed + number * STREAM; }

__device__ float between_ones(uint64_t bits) { return (float)(int)(bits >> 40) * 0x1p-23f - 1.0f; }

// Returns a value from 1 to 1.008.
__device__ float near_one(uint64_t number, uint64_t seed) {
    return 1.0f + (float)(int)(word(number, seed) >> 50) * 0x1p-21f;
}

__device__ bool is_spike(const Recipe& how, uint64_t along) {
    return along % 15 == word(0, stream(how.shared_seed, 3)) % 15;
}

// Returns an element of the distribution for a random word.
__device__ float value(const Recipe& how, uint64_t bits, uint64_t line, uint64_t along) {
    uint64_t constants = stream(how.seed, 4);
    switch (how.distribution) {
        case UNIFORM:
            return between_ones(bits);
        case POSITIVE:
            return fabsf(between_ones(bits));
        case NORMAL: {
            double radius = sqrt(-2.0 * log(((double)(bits >> 32) + 0.5) * 0x1p-32));
            return (float)(radius * cospi((double)(bits & 0xffffffff) * 0x1p-31));
        }
        case INTEGERS:
            return (float)(int)((bits >> 40) % 65) - 32.0f;
        case ODD_INTEGERS: {
            float odd = (float)(int)(2 * ((bits >> 40) % 1024 + 1024) + 1);
            return bits & 1 ? -odd : odd;
        }
        case SIGNS:
            return (float)(int)((bits >> 40) % 3) - 1.0f;
        case LEVELS:
            return between_ones(word(bits >> 62, stream(how.seed, 3)));
        case CONSTANT:
            return near_one(line, constants);
        case NEIGHBOURS: {
            uint64_t steps = (word(0, constants) >> 50) + (along & 1 ? 1031 : 0);
            return 1.0f + (float)(int)steps * 0x1p-21f;
        }
        case OPPOSITES:
            return along & 1 ? -near_one(line, constants) : near_one(line, constants);
        case SPIKES:
            return near_one(line, constants) * (is_spike(how, along) ? 1.0f : 0x1p-8f);
        case ONES:
            return 1.0f;
        default:
            return 2.0f;
    }
}

__device__ float structured(const Recipe& how, uint64_t i, uint64_t line, uint64_t along,
                            uint64_t lines, uint64_t length) {
    uint64_t seed = stream(how.seed, 1);
    bool kept = true;
    switch (how.structure) {
        case ZERO:
            return 0.0f;
        case SPARSE:
            kept = word(i, seed) % 10 == 0;
            break;
        case ZERO_LINES:
            kept = word(line, seed) % 4 != 0;
            break;
        case ONE_HOT:
            return line == word(0, seed) % lines && along == word(0, how.shared_seed) % length
                       ? 3.0f
                       : 0.0f;
        case IDENTITY:
            return along == line % length ? 1.0f : 0.0f;
        case PERMUTATION:
            return along == (line + word(0, seed) % length) % length ? 1.0f : 0.0f;
        case TRIANGULAR:
            kept = (along * lines <= line * length) == (word(0, seed) % 2 == 1);
            break;
        case BANDED: {
            uint64_t middle = line * length / lines;
            kept = along + 8 >= middle && along <= middle + 8;
            break;
        }
        case RANK_ONE: {
            uint64_t of_along = word(along, stream(how.shared_seed, 1));
            return value(how, word(line, seed), line, line) * value(how, of_along, along, along);
        }
        case REPEATED_LINES: {
            uint64_t same = line / 16;
            return value(how, word(same * length + along, how.seed), same, along);
        }
        case WITHOUT_SPIKES:
            kept = !is_spike(how, along);
            break;
        case REPEATED_PARTS: {
            uint64_t size = (length + 3) / 4;
            float x = value(how, word(line * length + along % size, how.seed), line, along);
            return word(along / size, seed) & 1 ? -x : x;
        }
    }
    return kept ? value(how, word(i, how.seed), line, along) : 0.0f;
}

__device__ int exponent(const Recipe& how, uint64_t seed, uint64_t number) {
    return (int)((word(number, seed) >> 32) % (uint64_t)(how.high - how.low + 1)) + how.low;
}

// Returns the exponent of the last drawn rectangle that contains the element.
__device__ int exponent_of_rectangles(const Recipe& how, uint64_t seed, uint64_t line,
                                      uint64_t along, uint64_t lines, uint64_t length) {
    int found = 0;
    for (int number = 0; number < 6; number++) {
        uint64_t at = word(2 * number + 100, seed), size = word(2 * number + 101, seed);
        uint64_t top = (at >> 32) % lines, height = 1 + (size >> 32) % lines;
        uint64_t left = (at & 0xffffffff) % length, last = length - length / 8;
        uint64_t width = (length + 7) / 8 + (size & 0xffffffff) % length;
        if (left > last) left = last;
        if (line >= top && line < top + height && along >= left && along < left + width)
            found = exponent(how, seed, number);
    }
    return found;
}

__device__ int exponent_at(const Recipe& how, uint64_t i, uint64_t line, uint64_t along,
                           uint64_t lines, uint64_t length) {
    bool inner = how.magnitude == INNER || how.magnitude == INNER_INVERSE;
    uint64_t seed = stream(inner ? how.shared_seed : how.seed, 2);
    switch (how.magnitude) {
        case MATRIX:
            return exponent(how, seed, 0);
        case GROUPS:
            return exponent(how, seed, line / 8);
        case LINES:
            return exponent(how, seed, line);
        case LONE_LINES:
            return word(line, seed) % 64 == 0 ? exponent(how, seed, line) : 0;
        case INNER:
            return exponent(how, seed, along / 8);
        case INNER_INVERSE:
            return -exponent(how, seed, along / 8);
        case CHANGING: {
            uint64_t least = (length + 7) / 8, places = length - length / 8 + 1 - least;
            uint64_t place = least + (word(line, stream(seed, 1)) >> 32) % places;
            return along >= place ? exponent(how, seed, line) : 0;
        }
        case RECTANGLES:
            return exponent_of_rectangles(how, seed, line, along, lines, length);
        case ELEMENTS:
            return exponent(how, seed, i);
        default:
            return 0;
    }
}

// Returns whether `at` is the random place in this eighth of a line of `length` elements.
__device__ bool in_eighth(uint64_t at, uint64_t length, uint64_t eighth, uint64_t random) {
    uint64_t from = eighth * length / 8, size = (eighth + 1) * length / 8 - from;
    return size && at == from + random % size;
}

// Returns the sign of the one outlier of its quarter of the matrix, or of one that is not finite and
// at an end. Returns 0 for other elements.
__device__ int outlier_sign(const Recipe& how, uint64_t row, uint64_t column, uint64_t rows,
                            uint64_t columns) {
    uint64_t at = row * columns + column;
    uint64_t seed = stream(how.seed, 5), turns = word(0, seed);
    for (int number = 0; number < 4; number++) {
        int lower = number / 2, right = number / 2 ^ number % 2;
        uint64_t place = word(number + 1, seed);
        if (in_eighth(row, rows, 4 * lower + (number ^ turns % 4), place >> 32) &&
            in_eighth(column, columns, 4 * right + (number ^ turns / 4 % 4), place & 0xffffffff))
            return number % 2 ? -1 : 1;
    }
    if (!isfinite(how.outlier) && at == 0) return -1;
    return !isfinite(how.outlier) && at == rows * columns - 1;
}

// Returns element i of a matrix with this many rows and columns.
__device__ float drawn(const Recipe& how, uint64_t i, uint64_t rows, uint64_t columns) {
    bool by_place = how.distribution == CONSTANT || how.distribution >= NEIGHBOURS;
    if (how.structure == DENSE && how.magnitude == NONE && !how.outliers && !by_place)
        return value(how, word(i, how.seed), 0, 0);
    uint64_t row = i / columns, column = i % columns;
    if (how.outliers)
        if (int sign = outlier_sign(how, row, column, rows, columns))
            return sign < 0 ? -how.outlier : how.outlier;
    uint64_t line = how.by_column ? column : row, along = how.by_column ? row : column;
    uint64_t lines = how.by_column ? columns : rows, length = how.by_column ? rows : columns;
    float x = structured(how, i, line, along, lines, length);
    if (how.magnitude == NONE) return x;
    return ldexpf(x, exponent_at(how, i, line, along, lines, length));
}

#define RECIPE_PARAMETERS                                                             \
    int distribution, int structure, int magnitude, int low, int high, int by_column, \
        int outliers, float outlier, uint64_t seed, uint64_t shared_seed
#define RECIPE \
    {distribution, structure, magnitude, low, high, by_column, outliers, outlier, seed, shared_seed}

extern "C" __global__ void draw(float* x, uint64_t rows, uint64_t columns, RECIPE_PARAMETERS) {
    Recipe how = RECIPE;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < rows * columns;
         i += stride)
        x[i] = drawn(how, i, rows, columns);
}

// Counts the elements that have changed since they were drawn.
extern "C" __global__ void count_changed(const float* x, uint64_t rows, uint64_t columns,
                                         RECIPE_PARAMETERS, uint64_t* changed) {
    Recipe how = RECIPE;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x, found = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < rows * columns;
         i += stride)
        found += __float_as_uint(x[i]) != __float_as_uint(drawn(how, i, rows, columns));
    if (found) atomicAdd(changed, found);
}

// Draws +1 or -1 with equal probability.
extern "C" __global__ void draw_signs(double* x, uint64_t count, uint64_t seed) {
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < count) x[i] = word(i, seed) >> 63 ? 1.0 : -1.0;
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

// Computes y[row] = matrix[row] · x in float64, with one block of 256 threads per row.
extern "C" __global__ void multiply(const float* matrix, const double* x, double* y, int columns) {
    const float* row = matrix + (uint64_t)blockIdx.x * columns;
    double sum = 0.0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * x[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// Computes y[row] = ‖matrix[row]‖² in float64, with one block of 256 threads per row.
extern "C" __global__ void square_norms(const float* matrix, double* y, int columns) {
    const float* row = matrix + (uint64_t)blockIdx.x * columns;
    double sum = 0.0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * row[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// Returns a relative error: 0 if the difference is 0, infinite for NaN and for divisions by 0.
__device__ double quotient(double difference, double size) {
    double found = difference == 0.0 ? 0.0 : difference / size;
    return found >= 0.0 ? found : __longlong_as_double(0x7ff0000000000000LL);
}

// Each thread block computes three errors of one 16×16 block of C in float64: by the block rule,
// the largest |C - R| / (‖a‖ ‖b‖), and the largest |C - R| / (|A| |B|). problem/reference.py and
// problem/accuracy.py define them. The seed selects the block. One at an edge counts as a whole one.
extern "C" __global__ void block_errors(const float* A, const float* B, const float* C, int M,
                                        int N, int K, uint64_t seed, double* errors) {
    __shared__ double by_norms[256], by_terms[256];
    uint64_t row_blocks = (M + 15) / 16, column_blocks = (K + 15) / 16;
    uint64_t chosen = mix(seed + blockIdx.x * GOLDEN) % (row_blocks * column_blocks);
    uint64_t row = chosen / column_blocks * 16 + threadIdx.x / 16;
    uint64_t column = chosen % column_blocks * 16 + threadIdx.x % 16;
    double R = 0.0, squares_a = 0.0, squares_b = 0.0, terms = 0.0, difference = 0.0;
    if (row < M && column < K) {
        for (int n = 0; n < N; n++) {
            double a = A[row * N + n], b = B[(uint64_t)n * K + column];
            R += a * b;
            terms += fabs(a * b);
            squares_a += a * a;
            squares_b += b * b;
        }
        difference = fabs(C[row * K + column] - R);
    }
    double norms = sqrt(squares_a) * sqrt(squares_b);
    by_norms[threadIdx.x] = quotient(difference, norms);
    by_terms[threadIdx.x] = quotient(difference, terms);
    double error = sum_of_block(difference * difference);
    __syncthreads();
    double size_R = sum_of_block(R * R);
    __syncthreads();
    double size_S = sum_of_block(squares_a * squares_b / N);
    if (threadIdx.x) return;
    double largest_by_norms = 0.0, largest_by_terms = 0.0;
    for (int i = 0; i < 256; i++) {
        largest_by_norms = fmax(largest_by_norms, by_norms[i]);
        largest_by_terms = fmax(largest_by_terms, by_terms[i]);
    }
    double whole = (double)min(M, 16) * min(K, 16);
    double part = (double)min(M - (int)row, 16) * min(K - (int)column, 16);
    double size = fmax(size_R, size_S) * whole / part;
    errors[3 * blockIdx.x] = error == 0.0 ? 0.0 : sqrt(error / size);
    errors[3 * blockIdx.x + 1] = largest_by_norms;
    errors[3 * blockIdx.x + 2] = largest_by_terms;
}
