// solve: tile=256x512 shared_memory=49280
// Strassen: seven products of quarter matrices instead of eight, one level, in one launch.
//
// Idea: cut A, B and C into 2x2 quarters. The eight products of quarters become seven products of
// sums of quarters (V. Strassen, Gaussian elimination is not optimal, 1969), 12.5 % fewer
// multiplications. Nothing is stored in between. A block owns the same 128x256 tile in each
// quarter of C and takes the seven products one after the other:
//   * the sums of quarters of A and B are made on the way to shared memory: both operands are
//     loaded into registers, added and stored there, spread over the steps of k;
//   * each product is added to the one or two quarters of C that it belongs to. The same thread
//     adds all contributions to an element, so no two blocks or threads ever meet.
// What it costs: loads that pass through registers, 24 additions a thread and stage, and
// accuracy. The error of an element of C is no longer bounded by its own row and column but by
// the largest of the quarters. Where rows of A or columns of B differ in size by more than a
// factor of 4 (looked up in their first 32 elements), and at sizes that do not fit, the block
// makes the ordinary product.
//
// A block keeps a multiprocessor busy for seven half products, so the small sizes are slow: below
// about 4096 there are too few blocks.
//
// Expected gain: 7/8 of the multiplications of 17, in a loop that is a little slower.
// In the judge, on an H100: 1.089 x cuBLAS (95 %: 1.089 to 1.090), 7.405 ms, 0.98 x the speed
// of 17; 227 registers, 49296 B of shared memory, 1 block a multiprocessor.
// reports/h100/19_strassen.json has the rest.

constexpr int BM = 128, BN = 256, BK = 16;
constexpr int TM = 16, TN = 8;
constexpr int A_BYTES = BK * BM * 4, STAGE_BYTES = A_BYTES + BK * BN * 4;
constexpr int RASTER_ROWS = 4;  // consecutive blocks walk down this many tiles, then one column on

// A piece (of 6 a stage) is loaded every LOAD_EVERY steps of k, and stored STORE_AFTER steps later.
constexpr int LOAD_EVERY = 2, STORE_AFTER = 3;

// (A[a] + a_sign * A[a2]) * (B[b] + b_sign * B[b2]), times c_sign added to C[c] and times c2_sign
// to C[c2]. Quarters are numbered 0 1 / 2 3; where a sign is 0 there is no second one.
struct Product {
    int a, a2, b, b2, c, c2;
    float a_sign, b_sign, c_sign, c2_sign;
};

__constant__ Product products[7] = {
    {0, 3, 0, 3, 0, 3, 1, 1, 1, 1},  {2, 3, 0, 0, 2, 3, 1, 0, 1, -1},
    {0, 0, 1, 3, 1, 3, 0, -1, 1, 1}, {3, 3, 2, 0, 0, 2, 0, -1, 1, 1},
    {0, 1, 3, 3, 0, 1, 1, 0, -1, 1}, {2, 0, 0, 1, 3, 3, -1, 1, 1, 0},
    {1, 3, 2, 3, 0, 0, -1, 1, 1, 0},
};

__device__ __forceinline__ void load4(float* to, unsigned from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from));
}

__device__ __forceinline__ void store(unsigned to, float value) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}

__device__ __forceinline__ void store4(unsigned to, float4 value) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(value.x), "f"(value.y),
                 "f"(value.z), "f"(value.w)
                 : "memory");
}

// Hides a value's origin from the compiler, which would otherwise compute it anew at every use.
__device__ __forceinline__ void keep(unsigned& value) { asm volatile("" : "+r"(value)); }

__device__ __forceinline__ int thread() { return threadIdx.y * 16 + threadIdx.x; }

// This thread's first row and column within a tile: warps 2 x 4 of 64x64, lanes 4 x 8.
__device__ __forceinline__ int thread_row() { return thread() / 128 * 64 + thread() % 32 / 8 * 4; }
__device__ __forceinline__ int thread_col() { return thread() / 32 % 4 * 64 + thread() % 8 * 4; }
__device__ __forceinline__ int down(int i) { return i / 4 * 16 + i % 4; }
__device__ __forceinline__ int right(int j) { return j / 4 * 32 + j % 4; }

// Where a row of A lies within the line of k.
__device__ __forceinline__ int swizzle(int row, int k) { return row ^ k / 4 % 4 * 8; }

__device__ __forceinline__ float4 add(float4 x, float sign, float4 y) {
    return make_float4(fmaf(sign, y.x, x.x), fmaf(sign, y.y, x.y), fmaf(sign, y.z, x.z),
                       fmaf(sign, y.w, x.w));
}

__device__ __forceinline__ void strassen(const float* A, const float* B, float* C, int M, int N,
                                         int K, int row0, int col0, unsigned shared) {
    // The orders of loads and rows, and when copies are made, change nothing but the schedule that
    // the compiler finds. These were the fastest of a random search with CUDA 13.0.
    constexpr int LOADS[6] = {1, 2, 4, 5, 0, 3};  // 0-3: groups of rows of A, 4-5: of columns of B
    constexpr int ROW_GROUPS[4] = {0, 1, 2, 3};
    int a_k = thread() % 4 * 4, a_row = thread() / 4;  // 4 k of this row and of that 64 further
    int b_k = thread() / 16,
        b_col = thread() % 16 * 4;  // 4 columns, and those 64, 128, 192 further
    unsigned to_a = shared + (a_k * BM + swizzle(a_row, a_k)) * 4;
    unsigned to_b = shared + A_BYTES + (b_k * BN + b_col) * 4;
    unsigned read_a[2] = {shared + thread_row() * 4, shared + (thread_row() ^ 8) * 4};
    unsigned read_b = shared + A_BYTES + thread_col() * 4;
    unsigned a_down = N * (64 * 4u), b_stage = K * (BK * 4u);  // bytes
    keep(to_a), keep(to_b), keep(read_a[0]), keep(read_a[1]), keep(read_b), keep(a_down),
        keep(b_stage);
    int other = STAGE_BYTES;  // from the stage in use to the other one

#pragma unroll 1
    for (int n = 0; n < 7; ++n) {
        Product p = products[n];
        auto in_a = [&](int quarter) {
            return (const char*)(A + (size_t)(quarter / 2 * (M / 2) + row0 + a_row) * N +
                                 quarter % 2 * (N / 2) + a_k);
        };
        auto in_b = [&](int quarter) {
            return (const char*)(B + (size_t)(quarter / 2 * (N / 2) + b_k) * K +
                                 quarter % 2 * (K / 2) + col0 + b_col);
        };
        const char *from_a = in_a(p.a), *from_a2 = in_a(p.a2);
        const char *from_b = in_b(p.b), *from_b2 = in_b(p.b2);
        bool two_a = p.a_sign != 0.0f, two_b = p.b_sign != 0.0f;

        float4 piece[6], piece2[6];
        auto load_piece = [&](int c) {
            if (c < 4) {
                piece[c] = __ldg((const float4*)(from_b + c * 256));
                if (two_b) piece2[c] = __ldg((const float4*)(from_b2 + c * 256));
            } else {
                piece[c] = __ldg((const float4*)(from_a + (size_t)a_down * (c - 4)));
                if (two_a) piece2[c] = __ldg((const float4*)(from_a2 + (size_t)a_down * (c - 4)));
            }
        };
        auto store_piece = [&](int c) {
            float4 v = piece[c];
            if (c < 4) {
                if (two_b) v = add(v, p.b_sign, piece2[c]);
                store4(to_b + c * 256, v);
            } else {
                if (two_a) v = add(v, p.a_sign, piece2[c]);
                unsigned to = to_a + (c - 4) * 256;
                store(to, v.x), store(to + BM * 4, v.y), store(to + BM * 8, v.z),
                    store(to + BM * 12, v.w);
            }
        };

        float a[2][TM], b[2][TN];  // the fragments of this k and of the next
        auto load_fragments = [&](int k, int buffer) {
#pragma unroll
            for (int n = 0; n < 6; ++n) {
                int g = LOADS[n];
                if (g < 4)
                    load4(&a[buffer][g * 4], read_a[k / 4 % 2] + (k * BM + (g ^ k / 8) * 16) * 4);
                else
                    load4(&b[buffer][(g - 4) * 4], read_b + (k * BN + (g - 4) * 32) * 4);
            }
        };

        __syncthreads();  // the stages may still be in use for the product before
#pragma unroll
        for (int c = 0; c < 6; ++c) load_piece(c), store_piece(c);
        __syncthreads();
        load_fragments(0, 0);
        to_a += other, to_b += other;

        float sum[TM][TN] = {};
#pragma unroll 1
        for (int i = 0; i < N / 2;) {
            // After the last stage the same one is loaded once more, so that no step is special.
            if ((i += BK) < N / 2) {
                from_a += BK * 4, from_a2 += BK * 4;
                from_b += b_stage, from_b2 += b_stage;
            }
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {
                    __syncthreads();
                    read_a[0] += other, read_a[1] += other, read_b += other, other = -other;
                    to_a += other, to_b += other;
                }
                load_fragments((k + 1) % BK, (k + 1) % 2);
#pragma unroll
                for (int c = 0; c < 6; ++c) {
                    if (k == c * LOAD_EVERY) load_piece(c);
                    if (k == c * LOAD_EVERY + STORE_AFTER) store_piece(c);
                }
#pragma unroll
                for (int r = 0; r < TM; ++r)
#pragma unroll
                    for (int m = 0; m < TN; ++m) {
                        int i = ROW_GROUPS[r / 4] * 4 + r % 4, j = r % 2 ? TN - 1 - m : m;
                        sum[i][j] += a[k % 2][i] * b[k % 2][j];
                    }
            }
        }
        to_a -= other, to_b -= other;  // back to the stage that is read next

#pragma unroll 1
        for (int t = 0; t < 2; ++t) {
            int quarter = t == 0 ? p.c : p.c2;
            float sign = t == 0 ? p.c_sign : p.c2_sign;
            if (sign == 0.0f) continue;
            bool first = n == 0 || (n == 1 && quarter == 2) || (n == 2 && quarter == 1);
            // One float at a time: stores of four would bind the sums' registers (see 16).
            float* to = C + (size_t)(quarter / 2 * (M / 2) + row0 + thread_row()) * K +
                        quarter % 2 * (K / 2) + col0 + thread_col();
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    float* c = to + (size_t)down(i) * K + right(j);
                    *c = first ? sum[i][j] : fmaf(sign, sum[i][j], *c);
                }
        }
    }
}

// One tile of the ordinary product, wherever it lies; zeros outside the matrices.
__device__ __forceinline__ void ordinary(const float* A, const float* B, float* C, int M, int N,
                                         int K, int row0, int col0, unsigned shared) {
    float sum[TM][TN] = {};
#pragma unroll 1
    for (int n = 0; n < N; n += BK) {
        __syncthreads();
        int k = n + thread() % BK, col = col0 + thread();
#pragma unroll 1
        for (int i = thread() / BK; i < BM; i += 256 / BK)
            store(shared + (thread() % BK * BM + swizzle(i, thread() % BK)) * 4,
                  row0 + i < M && k < N ? A[(size_t)(row0 + i) * N + k] : 0.0f);
#pragma unroll 1
        for (int i = 0; i < BK; ++i)
            store(shared + A_BYTES + (i * BN + thread()) * 4,
                  n + i < N && col < K ? B[(size_t)(n + i) * K + col] : 0.0f);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load4(&a[i], shared + (k * BM + swizzle(thread_row() + i * 4, k)) * 4);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load4(&b[j], shared + A_BYTES + (k * BN + thread_col() + j * 8) * 4);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
        }
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            int row = row0 + thread_row() + down(i), col = col0 + thread_col() + right(j);
            if (row < M && col < K) C[(size_t)row * K + col] = sum[i][j];
        }
}

// Whether this block's rows of A, and its columns of B, are all of about the same size.
__device__ __forceinline__ bool balanced(const float* A, const float* B, int M, int N, int K,
                                         int row0, int col0) {
    constexpr int SAMPLE = 32;
    __shared__ int smallest[2],
        largest[2];  // squared sizes as integers, which order like the floats
    if (thread() < 2) smallest[thread()] = 0x7fffffff, largest[thread()] = 0;
    __syncthreads();

    int row = row0 + thread() % BM + thread() / BM * (M / 2);
    float of_a = 0.0f;
#pragma unroll 16
    for (int k = 0; k < SAMPLE; ++k) {
        float a = A[(size_t)row * N + k];
        of_a += a * a;
    }
    atomicMin(&smallest[0], __float_as_int(of_a));
    atomicMax(&largest[0], __float_as_int(of_a));
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
        float of_b = 0.0f;
#pragma unroll 16
        for (int k = 0; k < SAMPLE; ++k) {
            float b = B[(size_t)k * K + half * (K / 2) + col0 + thread()];
            of_b += b * b;
        }
        atomicMin(&smallest[1], __float_as_int(of_b));
        atomicMax(&largest[1], __float_as_int(of_b));
    }
    __syncthreads();
    // Comparisons written so that NaN and infinity are not balanced.
    auto close = [&](int i) {
        return __int_as_float(largest[i]) < 16.0f * __int_as_float(smallest[i]);
    };
    return close(0) && close(1);
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float stages[];
    unsigned shared = (unsigned)__cvta_generic_to_shared(stages);

    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int band = block / (RASTER_ROWS * gridDim.x), within = block % (RASTER_ROWS * gridDim.x);
    int height = min((int)gridDim.y - band * RASTER_ROWS, RASTER_ROWS);
    int tile_row = band * RASTER_ROWS + within % height, tile_col = within / height;

    bool quarters = M % (2 * BM) == 0 && K % (2 * BN) == 0 && N % (2 * BK) == 0 &&
                    (size_t)A % 16 == 0 && (size_t)B % 16 == 0 && (size_t)C % 16 == 0;
    if (quarters && balanced(A, B, M, N, K, tile_row * BM, tile_col * BN)) {
        strassen(A, B, C, M, N, K, tile_row * BM, tile_col * BN, shared);
        return;
    }
#pragma unroll 1
    for (int q = 0; q < 4; ++q) {
        int row0 = quarters ? tile_row * BM + q / 2 * (M / 2) : (tile_row * 2 + q / 2) * BM;
        int col0 = quarters ? tile_col * BN + q % 2 * (K / 2) : (tile_col * 2 + q % 2) * BN;
        if (row0 < M && col0 < K) ordinary(A, B, C, M, N, K, row0, col0, shared);
    }
}
