// solve: tile=64x64
// A block computes a square tile of 64x64, and each thread 16 elements of a column.
//
// Idea: the tile of 06 is 128x16, so each float of A is copied for only 16 columns. A block with
// 64x64 of C copies each float of A for 64 columns and each float of B for 64 rows. That is a
// quarter of the traffic of A in 06, and a quarter of all traffic in 02. A thread keeps one float
// of B in a register for its 16 rows.
//
// Inputs: FP32 sums, as 01.
//
//     block 64x64:   thread t has rows 16 (t / 64) to + 15 of column t % 64
//
// Expected gain over 06: little, since only global traffic decreases. 17 shared loads for 16
// products are about the same ratio as 9 for 8. 08 improves that ratio.
// In the judge, on an H200: 0.344 x cuBLAS (95 %: 0.344 to 0.344), 23.661 ms, 0.95 x the speed
// of 06; 64 registers, 8192 B of shared memory, 4 blocks a multiprocessor.
// reports/h200/07_block_tile_1d.json has the rest.
// S. Boehm's SGEMM_CUDA has 36.5 % of cuBLAS at this step, on an RTX A6000 at 4096^3.

constexpr int BM = 64, BN = 64, BK = 16;
constexpr int TM = BM * BN / 256;  // rows of a thread

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[BM][BK];
    __shared__ float tile_b[BK][BN];

    int tid = threadIdx.y * 16 + threadIdx.x;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    int row = tid / BN * TM, col = tid % BN;  // this thread's first element within the tile

    float sum[TM] = {};
    for (int n = 0; n < N; n += BK) {
        for (int i = tid; i < BM * BK; i += 256) {
            int r = i / BK, k = i % BK;
            tile_a[r][k] = row0 + r < M && n + k < N ? A[(size_t)(row0 + r) * N + n + k] : 0.0f;
        }
        for (int i = tid; i < BK * BN; i += 256) {
            int k = i / BN, c = i % BN;
            tile_b[k][c] = n + k < N && col0 + c < K ? B[(size_t)(n + k) * K + col0 + c] : 0.0f;
        }
        __syncthreads();

        for (int k = 0; k < BK; ++k) {
            float b = tile_b[k][col];
            for (int r = 0; r < TM; ++r) sum[r] += tile_a[row + r][k] * b;
        }
        __syncthreads();
    }

    for (int r = 0; r < TM; ++r)
        if (row0 + row + r < M && col0 + col < K)
            C[(size_t)(row0 + row + r) * K + col0 + col] = sum[r];
}
