// solve: tile=128x128
// Double buffering: the next stage is loaded while this one is multiplied.
//
// Idea: in 10 all threads wait twice per stage: for the loads from global memory, and for the last
// thread that reads the tile. Here shared memory has two buffers. The next stage is loaded into
// registers BEFORE the products of this one, and stored in the other buffer AFTER them. One barrier
// per stage is enough. Fragments are double-buffered as well: those of step k + 1 are loaded while
// the products of step k are computed.
//
// Inputs: FP32 sums, as 01.
//
//     stage n:       load n + 1 to registers | multiply buffer n % 2 | store n + 1 | barrier
//     step k of n:   load fragments k + 1 | multiply fragments k
//
// Expected gain over 10: the latency of global memory, 500 cycles and more, overlaps the products,
// which take about 600 cycles per stage.
// In the judge, on an H200: 0.849 x cuBLAS (95 %: 0.848 to 0.849), 9.572 ms, 1.13 x the speed
// of 10; 127 registers, 16640 B of shared memory, 2 blocks a multiprocessor.
// reports/h200/11_double_buffering.json has the rest.
// S. Boehm's SGEMM_CUDA has 74.3 % of cuBLAS with this change before 09 (RTX A6000, 4096^3).

constexpr int BM = 128, BN = 128, BK = 8;
constexpr int TM = 8, TN = 8;
constexpr int PITCH = BM + 4;

// Returns row[index] to row[index + 3], with zeros from `length` on.
__device__ float4 load4(const float* row, int index, int length, bool aligned) {
    if (aligned && index + 4 <= length) return *(const float4*)(row + index);
    return make_float4(
        index < length ? row[index] : 0.0f, index + 1 < length ? row[index + 1] : 0.0f,
        index + 2 < length ? row[index + 2] : 0.0f, index + 3 < length ? row[index + 3] : 0.0f);
}

// Returns the position of a thread's element i in the tile: two groups of four, 64 apart.
__device__ int spread(int thread, int i) { return thread * 4 + i / 4 * 64 + i % 4; }

extern "C" __global__ void __launch_bounds__(256, 2)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float tile_a[2][BK][PITCH];  // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];

    int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool aligned_a = N % 4 == 0 && (size_t)A % 16 == 0;
    bool aligned_b = K % 4 == 0 && (size_t)B % 16 == 0;
    int a_row = tid / (BK / 4), a_k = tid % (BK / 4) * 4;
    int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;
    const float* from_a = A + (size_t)(row0 + a_row) * N;

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
            *(float4*)&a[k % 2][i] = *(float4*)&tile_a[buffer][k][spread(ty, i)];
        for (int j = 0; j < TN; j += 4)
            *(float4*)&b[k % 2][j] = *(float4*)&tile_b[buffer][k][spread(tx, j)];
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
            int row = row0 + spread(ty, i), col = col0 + spread(tx, j);
            if (row < M && col < K) C[(size_t)row * K + col] = sum[i][j];
        }
}
