// Three BF16 products with wgmma, where each block splits the values that it loads.
// solve: tile=128x128 shared_memory=132096
//
// Idea. This is 31 with the tensor core instruction of Hopper, which reads both operands from
// shared memory. Each thread loads FP32 values of the next stage into registers and splits them
// into a high and a low BF16 part. It stores both parts in the swizzled layout of wgmma. Meanwhile
// the tensor cores multiply the current stage. One warpgroup splits before it multiplies, the other
// one after, which gains 4 %. Both operands are K-major, so the threads that load B transpose it.
// wgmma computes C' = B'A': its M, 64 for each of two warpgroups, are columns of C, its N are rows.
//
// Inputs. As in 31, two BF16 parts keep 16 bits (grade B or C). The worst block of random inputs in
// its report has 5.0e-6. In some gradings few elements dominate a block of C, and it exceeds the
// limit. Products that cancel have 1.7e-4, in other gradings 8.9e-4; cuBLAS has 1e-6. Plain FP32 is
// used for N <= 64.
//
//     stage:  | A 0-31 | A 32-63 | B 0-31 | B 32-63 |     slices of 32 elements along N
//     slice:  128 rows of A or columns of B:  | 32 high parts | 32 low parts |     swizzled
//
//     warpgroup 0:  multiply s     | split s + 1, load s + 2 | wait for wgmma | barrier
//     warpgroup 1:  split s + 1, load s + 2 | multiply s     | wait for wgmma | barrier
//
// Expected gain over 31: wgmma reaches the full rate of the tensor cores, mma.sync about 60 % of
// it. But each element is split by all of the 32 or 64 blocks that use it. Of the registers, 64 are
// accumulators, 64 sums and 64 loaded values.
// In the judge, on an H200: 3.191 x cuBLAS (95 %: 3.188 to 3.192), 2.555 ms, 1.58 x the speed
// of 31; 250 registers, 132096 B of shared memory, 1 block a multiprocessor.
// reports/h200/32_wgmma_split_while_loading.json has the rest.
// The best public library has 2.96 x at 8192^3 on an H100, in several kernels.

constexpr int BM = 128;    // rows of C that a block computes: wgmma's N
constexpr int BN = 128;    // columns of C that a block computes: wgmma's M for two warpgroups
constexpr int BK = 64;     // elements of a stage along N
constexpr int SLICE = 32;  // elements of a slice along N
constexpr int ROW_BYTES = 4 * SLICE;  // a row of a slice: 32 high parts, then 32 low parts
constexpr int SLICE_BYTES = BM * ROW_BYTES;
constexpr int STAGE_BYTES = BK / SLICE * 2 * SLICE_BYTES;
constexpr int PROMOTE = 2;  // stages between two promotions: 128 elements along N
static_assert(BM == BN, "slices of A and B have one size");

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// Splits two floats into two packed pairs of BF16: the rounded values and the rounded remainders.
__device__ __forceinline__ void split(float x, float y, unsigned& high, unsigned& low) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(high) : "f"(y), "f"(x));
    const float x_low = x - __uint_as_float(high << 16);
    const float y_low = y - __uint_as_float(high & 0xffff0000u);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(low) : "f"(y_low), "f"(x_low));
}

// A thread's share of a stage in registers.
struct Values {
    float4 a[BM / 16];    // row thread / 16 + 16 i; elements 4 (thread % 16) to + 3 along N
    float b[BN / 32][8];  // column lane + 32 q; element 8 warp + j along N
};

struct Source {
    const float *A, *B;
    int M, N, K, row0, column0;
};

// Loads this thread's share of the stage that starts at k0, with zeros outside the matrices.
__device__ __forceinline__ void load(Values& v, const Source& s, int k0, int thread) {
    const int row = s.row0 + thread / 16, k = k0 + thread % 16 * 4;
    const float* a = s.A + (size_t)row * s.N + k;
    const size_t a_step = (size_t)16 * s.N, b_step = s.K;
    if (s.N % 4 == 0 && (size_t)s.A % 16 == 0) {
        const int rows = k < s.N ? s.M - row : 0;
#pragma unroll
        for (int i = 0; i < BM / 16; ++i, a += a_step) {
            v.a[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (16 * i < rows) v.a[i] = *reinterpret_cast<const float4*>(a);
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int rows = k + e < s.N ? s.M - row : 0;
            const float* p = a + e;
#pragma unroll
            for (int i = 0; i < BM / 16; ++i, p += a_step) {
                (&v.a[i].x)[e] = 0.0f;
                if (16 * i < rows) (&v.a[i].x)[e] = *p;
            }
        }
    }
    const int column = s.column0 + thread % 32, b_k = k0 + thread / 32 * 8;
    const float* b = s.B + (size_t)b_k * s.K + column;
    int depth[BN / 32];
#pragma unroll
    for (int q = 0; q < BN / 32; ++q) depth[q] = column + 32 * q < s.K ? s.N - b_k : 0;
#pragma unroll
    for (int j = 0; j < 8; ++j, b += b_step)
#pragma unroll
        for (int q = 0; q < BN / 32; ++q) {
            v.b[q][j] = 0.0f;
            if (j < depth[q]) v.b[q][j] = b[32 * q];
        }
}

// Splits the values into a stage. The 16-byte segments of a row are swizzled by the row's number.
__device__ __forceinline__ void store(const Values& v, unsigned char* stage, int thread) {
    const int warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int i = 0; i < BM / 16; ++i) {
        const int row = thread / 16 + 16 * i, segment = thread % 8 / 2;
        uint2 high, low;
        split(v.a[i].x, v.a[i].y, high.x, low.x);
        split(v.a[i].z, v.a[i].w, high.y, low.y);
        unsigned char* to =
            stage + thread % 16 / 8 * SLICE_BYTES + row * ROW_BYTES + thread % 2 * 8;
        *reinterpret_cast<uint2*>(to + (segment ^ row % 8) * 16) = high;
        *reinterpret_cast<uint2*>(to + ((segment + 4) ^ row % 8) * 16) = low;
    }
#pragma unroll
    for (int q = 0; q < BN / 32; ++q) {
        const int column = lane + 32 * q, segment = warp % 4;
        uint4 high, low;
        split(v.b[q][0], v.b[q][1], high.x, low.x);
        split(v.b[q][2], v.b[q][3], high.y, low.y);
        split(v.b[q][4], v.b[q][5], high.z, low.z);
        split(v.b[q][6], v.b[q][7], high.w, low.w);
        unsigned char* to = stage + (BK / SLICE + warp / 4) * SLICE_BYTES + column * ROW_BYTES;
        *reinterpret_cast<uint4*>(to + (segment ^ column % 8) * 16) = high;
        *reinterpret_cast<uint4*>(to + ((segment + 4) ^ column % 8) * 16) = low;
    }
}

// acc (+)= A·B for a 64 x 128 x 16 step, with both operands K-major. `accumulate` 0 overwrites acc.
__device__ __forceinline__ void wgmma(float (&acc)[64], unsigned long long a, unsigned long long b,
                                      int accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0;\n}\n"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
          "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]),
          "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]),
          "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]), "+f"(acc[22]), "+f"(acc[23]),
          "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]), "+f"(acc[29]),
          "+f"(acc[30]), "+f"(acc[31]), "+f"(acc[32]), "+f"(acc[33]), "+f"(acc[34]), "+f"(acc[35]),
          "+f"(acc[36]), "+f"(acc[37]), "+f"(acc[38]), "+f"(acc[39]), "+f"(acc[40]), "+f"(acc[41]),
          "+f"(acc[42]), "+f"(acc[43]), "+f"(acc[44]), "+f"(acc[45]), "+f"(acc[46]), "+f"(acc[47]),
          "+f"(acc[48]), "+f"(acc[49]), "+f"(acc[50]), "+f"(acc[51]), "+f"(acc[52]), "+f"(acc[53]),
          "+f"(acc[54]), "+f"(acc[55]), "+f"(acc[56]), "+f"(acc[57]), "+f"(acc[58]), "+f"(acc[59]),
          "+f"(acc[60]), "+f"(acc[61]), "+f"(acc[62]), "+f"(acc[63])
        : "l"(a), "l"(b), "r"(accumulate));
}

// Returns a wgmma descriptor: K-major, 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
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
    extern __shared__ unsigned char shared[];
    unsigned char* stages = shared + (1024 - shared_address(shared) % 1024) % 1024;
    const int thread = threadIdx.y * 16 + threadIdx.x;
    const int warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
    const Source s = {A, B, M, N, K, (int)blockIdx.y * BM, (int)blockIdx.x * BN};
    const int count = (N + BK - 1) / BK;
    if (N <= 64) {
        fp32_tile(s, C, thread, stages);
        return;
    }

    Values v;
    load(v, s, 0, thread);
    store(v, stages, thread);
    load(v, s, BK, thread);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();

    float sum[BM / 2], acc[BM / 2];
#pragma unroll
    for (int i = 0; i < BM / 2; ++i) sum[i] = 0.0f;
    auto multiply = [&](int stage) {
        const unsigned address = shared_address(stages) + stage % 2 * STAGE_BYTES;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < BK / 16; ++k) {  // 16 values are 2 descriptor units, a slice's parts 4
            const unsigned slice = address + k / 2 * SLICE_BYTES;
            const unsigned long long a = descriptor(slice) + k % 2 * 2;
            const unsigned long long b =
                descriptor(slice + BK / SLICE * SLICE_BYTES + warpgroup * 64 * ROW_BYTES) +
                k % 2 * 2;
            wgmma(acc, b + 4, a, stage % PROMOTE > 0 || k > 0);
            wgmma(acc, b, a + 4, 1);
            wgmma(acc, b, a, 1);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    };
#pragma unroll 1
    for (int stage = 0; stage < count; ++stage) {
        if (warpgroup == 0) multiply(stage);  // while the other warpgroup splits
        if (stage + 1 < count) {
            store(v, stages + (stage + 1) % 2 * STAGE_BYTES, thread);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // before wgmma reads it
            load(v, s, (stage + 2) * BK, thread);                         // zeros past the end
        }
        if (warpgroup == 1) multiply(stage);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (stage % PROMOTE == PROMOTE - 1 || stage == count - 1) {
#pragma unroll
            for (int i = 0; i < BM / 2; ++i) {
                asm volatile("" : "+f"(acc[i])::"memory");
                sum[i] += acc[i];
            }
        }
        __syncthreads();  // the next stage is complete, and this one is free
    }

    const int row = s.row0 + lane % 4 * 2,
              column = s.column0 + warpgroup * 64 + warp * 16 + lane / 4;
    const int rows = column < K ? M - row : 0, rows_right = column + 8 < K ? M - row : 0;
    const size_t row_step = K, group_step = (size_t)7 * K;
    float* p = C + (size_t)row * K + column;
#pragma unroll
    for (int i = 0; i < BM / 8; ++i, p += group_step) {  // rows 8 i and 8 i + 1, columns 0 and 8
        if (8 * i < rows) p[0] = sum[4 * i];
        if (8 * i < rows_right) p[8] = sum[4 * i + 2];
        p += row_step;
        if (8 * i + 1 < rows) p[0] = sum[4 * i + 1];
        if (8 * i + 1 < rows_right) p[8] = sum[4 * i + 3];
    }
    if (blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1) {
        __syncthreads();  // before these elements are overwritten
        fp32_corner(A, B, C, M, N, K, thread);
    }
}
