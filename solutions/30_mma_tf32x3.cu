// FP32 accuracy from tensor cores: three TF32 products with mma.sync.
// solve: tile=128x128 shared_memory=107520
//
// Idea. TF32 keeps 11 significant bits of an FP32 number, so two parts keep 22: x = high + low, and
//     a·b = high·high + high·low + low·high + low·low.
// The last term is 2^-22 of the product and is omitted. The tensor cores add products to FP32
// accumulators, but truncate each sum. Therefore the accumulators are promoted every 128 elements
// along N: they are added to ordinary FP32 sums and cleared. Otherwise the error would grow with N.
// Each warp splits the fragments that it multiplies, in registers.
//
// Inputs. The file holds for all inputs that the judge draws (grade A). Two parts keep 22 of 24
// bits, which shows if products cancel: 7.4e-6, where cuBLAS has 6e-7.
//
//     block:  128 x 128 of C, 2 x 4 warps of 64 x 32
//     stage:  128 rows of A with 32 + 4 floats, 32 rows of B with 128 + 8 floats; the padding lets
//             each fragment load read all 32 banks
//     slots:  3 stages; cp.async fills stages s + 1 and s + 2 while stage s is multiplied
//
// Expected gain over FP32 FMA: 1.5 x. TF32 runs at 495 TFLOP/s with wgmma and at about 60 % of that
// with mma.sync. A third of that is 100 TFLOP/s. Registers: 199, of which 64 are accumulators and
// 64 sums. Shared memory: 3 stages of FP32, 105 KiB.
// In the judge, on an H200: 1.218 x cuBLAS (95 %: 1.218 to 1.219), 6.667 ms;
// 199 registers, 107520 B of shared memory, 1 block a multiprocessor.
// reports/h200/30_mma_tf32x3.json has the rest.

constexpr int BM = 128, BN = 128, BK = 32;  // tile of C and depth of one stage
constexpr int WM = 64, WN = 32;             // tile of one warp: 2 x 4 warps
constexpr int STAGES = 3;
constexpr int PROMOTE = 4;  // stages between two promotions: 128 elements along N
constexpr int A_STRIDE = BK + 4, B_STRIDE = BN + 8;  // floats from one row to the next
constexpr int A_STAGE = BM * A_STRIDE, B_STAGE = BK * B_STRIDE;

// Copies four floats asynchronously. Only the first `valid` exist; the others become zero.
__device__ __forceinline__ void copy4(float* to, const float* from, int valid, bool vector) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if (vector) {
        const int bytes = valid > 0 ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(bytes)
                     : "memory");
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int bytes = e < valid ? 4 : 0;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address + 4 * e),
                         "l"(from + e), "r"(bytes)
                         : "memory");
        }
    }
}

// Splits x into high + low, where high is x rounded to TF32. The tensor cores ignore the bits of
// low that TF32 does not have.
__device__ __forceinline__ void split(float x, unsigned& high, unsigned& low) {
    high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ float4 shared[];  // float4: copies of 16 bytes
    float* As = reinterpret_cast<float*>(shared);
    float* Bs = As + STAGES * A_STAGE;
    const int thread = threadIdx.y * 16 + threadIdx.x;
    const int warp = thread / 32, lane = thread % 32, group = lane / 4, quad = lane % 4;
    const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
    const int warp_row = warp / 4 * WM, warp_column = warp % 4 * WN;
    const int stages = (N + BK - 1) / BK;

    // This thread copies four floats of each of rows a_row + 32 i of A and rows b_row + 8 i of B.
    const int a_row = thread / 8, a_k = thread % 8 * 4, b_row = thread / 32,
              b_column = thread % 32 * 4;
    const float* a_from = A + (size_t)(row0 + a_row) * N + a_k;
    const float* b_from = B + (size_t)b_row * K + column0 + b_column;
    const size_t a_step = (size_t)32 * N, b_step = (size_t)8 * K;
    const bool a_vector = N % 4 == 0 && (size_t)A % 16 == 0,
               b_vector = K % 4 == 0 && (size_t)B % 16 == 0;
    auto copy_stage = [&](int stage) {
        float* a_to = As + stage % STAGES * A_STAGE + a_row * A_STRIDE + a_k;
        float* b_to = Bs + stage % STAGES * B_STAGE + b_row * B_STRIDE + b_column;
        const float* a = a_from + stage * BK;
        const float* b = b_from + (size_t)stage * BK * K;
#pragma unroll
        for (int i = 0; i < BM / 32; ++i, a += a_step) {
            const int valid = row0 + a_row + 32 * i < M ? N - stage * BK - a_k : 0;
            copy4(a_to + 32 * i * A_STRIDE, valid > 0 ? a : A, valid, a_vector);
        }
#pragma unroll
        for (int i = 0; i < BK / 8; ++i, b += b_step) {
            const int valid = stage * BK + b_row + 8 * i < N ? K - column0 - b_column : 0;
            copy4(b_to + 8 * i * B_STRIDE, valid > 0 ? b : B, valid, b_vector);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int stage = 0; stage < STAGES - 1; ++stage) copy_stage(stage);

    float sum[WM / 16][WN / 8][4] = {};
    float acc[WM / 16][WN / 8][4] = {};
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();  // this stage is complete, and the slot of the previous one is free
        copy_stage(stage + STAGES - 1);  // zeros past the end

        const float* a_stage = As + stage % STAGES * A_STAGE + (warp_row + group) * A_STRIDE + quad;
        const float* b_stage = Bs + stage % STAGES * B_STAGE + warp_column + group;
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            unsigned b_high[WN / 8][2], b_low[WN / 8][2];
#pragma unroll
            for (int j = 0; j < WN / 8; ++j)
#pragma unroll
                for (int r = 0; r < 2; ++r)
                    split(b_stage[(k + quad + r * 4) * B_STRIDE + j * 8], b_high[j][r],
                          b_low[j][r]);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) {
                unsigned a_high[4], a_low[4];
#pragma unroll
                for (int r = 0; r < 4; ++r)
                    split(a_stage[(i * 16 + r % 2 * 8) * A_STRIDE + k + r / 2 * 4], a_high[r],
                          a_low[r]);
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) mma(acc[i][j], a_low, b_high[j]);
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) mma(acc[i][j], a_high, b_low[j]);
#pragma unroll
                for (int j = 0; j < WN / 8; ++j) mma(acc[i][j], a_high, b_high[j]);
            }
        }
        if (stage % PROMOTE == PROMOTE - 1 || stage == stages - 1) {
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
    }

#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int row = row0 + warp_row + i * 16 + group + r / 2 * 8;
                const int column = column0 + warp_column + j * 8 + quad * 2 + r % 2;
                if (row < M && column < K) C[(size_t)row * K + column] = sum[i][j][r];
            }
}
