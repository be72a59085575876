// solve: tile=128x256 shared_memory=49664
// 15 without register bank conflicts.
//
// Idea: a scheduler's registers are in two banks, even and odd, and each bank delivers one
// register per cycle. A multiply-add reads three registers: a, b and the sum. The order of
// multiply-adds and the banks of the sums therefore decide the rate.
//   * Serpentine order: columns run 0..7 in one row, 7..0 in the next. b is reused at the turn.
//   * The sum should be in the bank opposite to b. Fragments are loaded as float4, so the banks of
//     b are even, odd, even, odd. A float4 store needs four sums in consecutive registers as well,
//     and the compiler keeps them there during the loop, in the same banks as b. So the stored
//     value here is a copy of the sum. Then the compiler puts nearly all sums in the right bank.
//
// Inputs: as for 15.
//
//     Multiply-adds per cycle and scheduler on an H100, measured by editing registers in machine
//     code (this experiment is not in the repository):
//       three register reads                                                              0.66
//       three register reads, two of them always in the same bank                         0.50
//       a reused from the previous multiply-add (.reuse), b and sum in opposite banks     0.93
//       the same, and b reused when the row changes                                       0.98
//
// Expected gain over 15: a tenth. The price is 128 additions at the end of a tile.
// In the judge, on an H200: 1.099 x cuBLAS (95 %: 1.098 to 1.099), 7.428 ms, 1.14 x the speed
// of 15; 198 registers, 49664 B of shared memory, 1 block a multiprocessor.
// reports/h200/16_register_banks.json has the rest.

constexpr int BM = 128, BN = 256, BK = 16;  // tile of a block; elements of a stage along N
constexpr int TM = 16, TN = 8;  // outputs of a thread: 4 groups of 4 rows, 2 groups of 4 columns
constexpr int PITCH = BM + 4;   // floats from one k to the next in the transposed tile of A
constexpr int A_BYTES = BK * PITCH * 4, STAGE_BYTES = A_BYTES + BK * BN * 4;

constexpr int RASTER_ROWS = 8;  // height of a band of tiles, which are numbered column by column

// A warp copies A with LANES_K lanes along N and the others along M. The copies of a stage are
// issued COPIES at a time, in every COPY_EVERY-th step of k from step COPY_FROM.
constexpr int LANES_K = 4, COPIES = 6, COPY_EVERY = 4, COPY_FROM = 1;
constexpr bool COPY_B_FIRST = false;

__device__ __forceinline__ void copy4(unsigned to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy4_or_zero(unsigned to, const float* from, bool inside) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(inside ? 4 : 0)
                 : "memory");
}

__device__ __forceinline__ void copy16(unsigned to, const float* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
}

__device__ __forceinline__ void load4(float* to, unsigned from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from));
}

// Hides how a value was computed, since the compiler would otherwise recompute it at every use.
__device__ __forceinline__ void keep(unsigned& value) { asm volatile("" : "+r"(value)); }

__device__ __forceinline__ int thread() { return threadIdx.y * 16 + threadIdx.x; }

// Return this thread's first row and column in the tile: 2 x 4 warps of 64x64, 4 x 8 lanes each.
__device__ __forceinline__ int thread_row() { return thread() / 128 * 64 + thread() % 32 / 8 * 4; }
__device__ __forceinline__ int thread_col() { return thread() / 32 % 4 * 64 + thread() % 8 * 4; }

// Accumulates a tile that is inside C. N is a multiple of BK, and rows of B are aligned to 16
// bytes.
__device__ __forceinline__ void multiply(const float* A, const float* B, int N, int K, int row0,
                                         int col0, unsigned shared, float (&sum)[TM][TN]) {
    // The orders of loads and rows, and the times of copies, affect only the compiler's schedule. A
    // random search found these (CUDA 13.0). Static LOADS only halve the compile time of NVRTC.
    static constexpr int LOADS[6] = {2, 4, 5, 1, 3, 0};  // 0-3: rows of A, 4-5: columns of B
    constexpr int ROW_GROUPS[4] = {3, 2, 1, 0};
    constexpr int PASS_ROWS = 8 * 32 / LANES_K;  // rows of A that the block copies at a time
    constexpr int A_COLUMNS = BK / LANES_K, A_COPIES = BM / PASS_ROWS * A_COLUMNS;
    constexpr int B_THREADS = 256 / BK, B_COPIES = BN / 4 / B_THREADS;  // threads along a row of B

    int lane = thread() % 32, warp = thread() / 32;
    int a_k = lane % LANES_K, a_row = warp * (32 / LANES_K) + lane / LANES_K;
    int b_k = thread() / B_THREADS, b_col = thread() % B_THREADS * 4;
    const float* from_a = A + (size_t)(row0 + a_row) * N + a_k;
    const float* from_b = B + (size_t)b_k * K + col0 + b_col;
    unsigned to_a = shared + (a_k * PITCH + a_row) * 4;
    unsigned to_b = shared + A_BYTES + (b_k * BN + b_col) * 4;
    unsigned read_a = shared + thread_row() * 4, read_b = shared + A_BYTES + thread_col() * 4;
    unsigned a_pass = N * (PASS_ROWS * 4u), b_stage = K * (BK * 4u);  // bytes
    keep(to_a), keep(to_b), keep(read_a), keep(read_b), keep(a_pass), keep(b_stage);

    auto copy = [&](int c) {
        if (COPY_B_FIRST)
            c = c < B_COPIES ? A_COPIES + c : c < A_COPIES + B_COPIES ? c - B_COPIES : c;
        if (c < A_COPIES) {
            int pass = c / A_COLUMNS, k = c % A_COLUMNS * LANES_K;
            copy4(to_a + (k * PITCH + pass * PASS_ROWS) * 4,
                  (const float*)((const char*)from_a + (size_t)a_pass * pass) + k);
        } else if (c < A_COPIES + B_COPIES) {
            c -= A_COPIES;
            copy16(to_b + c * B_THREADS * 16, from_b + c * B_THREADS * 4);
        }
    };

    float a[2][TM], b[2][TN];  // fragments of the current k and of the next
    auto load_fragments = [&](int k, int buffer) {
#pragma unroll
        for (int n = 0; n < 6; ++n) {
            int group = LOADS[n];
            if (group < 4)
                load4(&a[buffer][group * 4], read_a + (k * PITCH + group * 16) * 4);
            else
                load4(&b[buffer][(group - 4) * 4], read_b + (k * BN + (group - 4) * 32) * 4);
        }
    };

#pragma unroll
    for (int c = 0; c < A_COPIES + B_COPIES; ++c) copy(c);
    wait_for_copies();
    load_fragments(0, 0);
    int other = STAGE_BYTES;  // offset from the current stage to the other one
    to_a += other, to_b += other;

#pragma unroll 1
    for (int n = 0; n < N;) {
        // The last step copies its own stage again, so that all steps have the same code.
        if ((n += BK) < N) from_a += BK, from_b = (const float*)((const char*)from_b + b_stage);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {
                wait_for_copies();
                read_a += other, read_b += other, other = -other, to_a += other, to_b += other;
            }
            load_fragments((k + 1) % BK, (k + 1) % 2);
            if (k >= COPY_FROM && (k - COPY_FROM) % COPY_EVERY == 0)
#pragma unroll
                for (int c = 0; c < COPIES; ++c) copy((k - COPY_FROM) / COPY_EVERY * COPIES + c);
#pragma unroll
            for (int n = 0; n < TM; ++n)
#pragma unroll
                for (int m = 0; m < TN; ++m) {
                    int i = ROW_GROUPS[n / 4] * 4 + n % 4,
                        j = n % 2 ? TN - 1 - m : m;  // serpentine
                    sum[i][j] += a[k % 2][i] * b[k % 2][j];
                }
        }
    }
}

// Accumulates any tile. Copies have 4 bytes and write zeros for elements outside the matrices.
__device__ __forceinline__ void multiply_edge(const float* A, const float* B, int M, int N, int K,
                                              int row0, int col0, unsigned shared,
                                              float (&sum)[TM][TN]) {
    auto copy = [&](int n, unsigned to) {
        int k = n + thread() % BK, col = col0 + thread();
#pragma unroll 1
        for (int i = thread() / BK; i < BM; i += 256 / BK) {
            bool inside = row0 + i < M && k < N;
            copy4_or_zero(to + (thread() % BK * PITCH + i) * 4,
                          inside ? A + (size_t)(row0 + i) * N + k : A, inside);
        }
#pragma unroll 1
        for (int i = 0; i < BK; ++i) {
            bool inside = n + i < N && col < K;
            copy4_or_zero(to + A_BYTES + (i * BN + thread()) * 4,
                          inside ? B + (size_t)(n + i) * K + col : B, inside);
        }
    };

    unsigned now = shared, next = shared + STAGE_BYTES;
    copy(0, now);
#pragma unroll 1
    for (int n = 0; n < N;) {
        wait_for_copies();
        if ((n += BK) < N) copy(n, next);
#pragma unroll 1
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load4(&a[i], now + (k * PITCH + thread_row() + i * 4) * 4);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load4(&b[j], now + A_BYTES + (k * BN + thread_col() + j * 8) * 4);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
        }
        unsigned free = now;
        now = next, next = free;
    }
}

template <bool EDGE>
__device__ __forceinline__ void compute(const float* A, const float* B, float* C, int M, int N,
                                        int K, int row0, int col0, unsigned shared) {
    float sum[TM][TN] = {};
    if (EDGE)
        multiply_edge(A, B, M, N, K, row0, col0, shared, sum);
    else
        multiply(A, B, N, K, row0, col0, shared, sum);

    // Adding -0.0 changes no number, but creates a new value for the store. The new values can be
    // in consecutive registers, while the sums are in the banks that suit the products.
    float nothing = -0.0f;
    asm volatile("" : "+f"(nothing));
    int row = row0 + thread_row(), col = col0 + thread_col();
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            int down = row + i / 4 * 16 + i % 4, right = col + j / 4 * 32;
            float* to = C + (size_t)down * K + right;
            if (!EDGE) {
                *(float4*)to = make_float4(sum[i][j] + nothing, sum[i][j + 1] + nothing,
                                           sum[i][j + 2] + nothing, sum[i][j + 3] + nothing);
            } else {
                for (int e = 0; e < 4; ++e)
                    if (down < M && right + e < K) to[e] = sum[i][j + e];
            }
        }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float stages[];
    unsigned shared = (unsigned)__cvta_generic_to_shared(stages);

    int tile = blockIdx.y * gridDim.x + blockIdx.x;
    int band = tile / (RASTER_ROWS * gridDim.x), within = tile % (RASTER_ROWS * gridDim.x);
    int height = min((int)gridDim.y - band * RASTER_ROWS, RASTER_ROWS);
    int row0 = (band * RASTER_ROWS + within % height) * BM, col0 = within / height * BN;

    bool plain = row0 + BM <= M && col0 + BN <= K && N % BK == 0 && K % 4 == 0 &&
                 (size_t)B % 16 == 0 && (size_t)C % 16 == 0;
    if (plain)
        compute<false>(A, B, C, M, N, K, row0, col0, shared);
    else
        compute<true>(A, B, C, M, N, K, row0, col0, shared);
}
