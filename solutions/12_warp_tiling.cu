// solve: tile=128x128
// Warp tiling: the 32 threads of a warp compute a compact part of the tile, 32x64.
//
// Idea: in 11 a warp consists of two rows of the 16x16 threads. It computes 16 rows and all 128
// columns of the tile, so for each k it reads 16 floats of A and 128 of B. Here a warp is 4x8
// threads, with 32 rows and 64 columns, and reads 32 + 64 floats, a third less. For the same area,
// a rectangle that is closer to a square has shorter edges.
//
// Inputs: FP32 sums, as 01.
//
//     block 128x128:   4 x 2 warps of 32x64
//     warp 32x64:      4 x 8 lanes; lane 0 has rows 0-3 and 16-19, columns 0-3 and 32-35
//
// Expected gain over 11: a third less data from shared memory. That matters little if multiply-adds
// are the limit. 13 to 21 build on it.
// In the judge, on an H200: 0.833 x cuBLAS (95 %: 0.832 to 0.833), 9.770 ms, 0.98 x the speed
// of 11; 127 registers, 16640 B of shared memory, 2 blocks a multiprocessor.
// reports/h200/12_warp_tiling.json has the rest.
// S. Boehm's SGEMM_CUDA has 93.7 % of cuBLAS at this step, on an RTX A6000 at 4096^3.

constexpr int BM = 128, BN = 128, BK = 8;
constexpr int WM = 32, WN = 64;  // a warp's tile: 4 warps down, 2 across
constexpr int TM = 8, TN = 8;
constexpr int PITCH = BM + 4;

// Returns row[index] to row[index + 3], with zeros from `length` on.
__device__ float4 load4(const float* row, int index, int length, bool aligned) {
    if (aligned && index + 4 <= length) return *(const float4*)(row + index);
    return make_float4(
        index < length ? row[index] : 0.0f, index + 1 < length ? row[index + 1] : 0.0f,
        index + 2 < length ? row[index + 2] : 0.0f, index + 3 < length ? row[index + 3] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float tile_a[2][BK][PITCH];  // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];

    int tid = threadIdx.y * 16 + threadIdx.x, warp = tid / 32, lane = tid % 32;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool aligned_a = N % 4 == 0 && (size_t)A % 16 == 0;
    bool aligned_b = K % 4 == 0 && (size_t)B % 16 == 0;
    int a_row = tid / (BK / 4), a_k = tid % (BK / 4) * 4;
    int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;
    const float* from_a = A + (size_t)(row0 + a_row) * N;

    // This thread's first element. Its 8 rows and 8 columns are two groups of four, half a warp
    // tile apart.
    int my_row = warp / (BN / WN) * WM + lane / 8 * 4;
    int my_col = warp % (BN / WN) * WN + lane % 8 * 4;
    auto down = [](int i) { return i / 4 * (WM / 2) + i % 4; };
    auto right = [](int j) { return j / 4 * (WN / 2) + j % 4; };

    float4 next_a, next_b;
    auto fetch = [&](int n) {
        next_a = load4(from_a, n + a_k, row0 + a_row < M ? N : 0, aligned_a);
        next_b = load4(B + (size_t)(n + b_k) * K, col0 + b_col, n + b_k < N ? K : 0, aligned_b);
    };
    auto store = [&](int buffer) {
        tile_a[buffer][a_k + 0][a_row] = next_a.x;
        tile_a[buffer][a_k + 1][a_row] = next_a.y;
        tile_a[buffer][a_k + 2][a_row] = next_a.z;
        tile_a[buffer][a_k + 3][a_row] = next_a.w;
        *(float4*)&tile_b[buffer][b_k][b_col] = next_b;
    };

    float a[2][TM], b[2][TN];
    auto load_fragments = [&](int buffer, int k) {
        for (int i = 0; i < TM; i += 4)
            *(float4*)&a[k % 2][i] = *(float4*)&tile_a[buffer][k][my_row + down(i)];
        for (int j = 0; j < TN; j += 4)
            *(float4*)&b[k % 2][j] = *(float4*)&tile_b[buffer][k][my_col + right(j)];
    };

    float sum[TM][TN] = {};
    fetch(0);
    store(0);
    __syncthreads();

    for (int n = 0, buffer = 0; n < N; n += BK, buffer ^= 1) {
        if (n + BK < N) fetch(n + BK);
        load_fragments(buffer, 0);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) load_fragments(buffer, k + 1);
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += a[k % 2][i] * b[k % 2][j];
        }
        if (n + BK < N) store(buffer ^ 1);
        __syncthreads();  // the next stage is complete, and this buffer is free
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int row = row0 + my_row + down(i), col = col0 + my_col + right(j);
            if (row < M && col < K) C[(size_t)row * K + col] = sum[i][j];
        }
}
