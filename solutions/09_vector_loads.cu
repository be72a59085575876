// solve: tile=128x128
// Loads of 16 bytes, with A transposed in shared memory.
//
// Idea: a load takes one issue slot, whether it has 4 bytes or 16. The 8 floats of B that a thread
// needs for one k are consecutive. The 8 floats of A are in different rows. So A is transposed when
// it is stored to shared memory: tile_a[k][row]. Then a step of k needs 4 loads of float4 instead
// of 16 of float.
//
// Inputs: FP32 sums, as 01. If a row's length is not a multiple of 4, rows are not aligned to
// 16 bytes, and load4 reads one float at a time. It returns zeros outside the matrices.
//
//     tile_a[k]:   128 rows of A        thread (tx, ty) reads rows 8 ty to + 7: two float4s
//     tile_b[k]:   128 columns of B     and columns 8 tx to + 7: two float4s
//
// Expected gain over 08: 64 products need 4 loads instead of 16.
// In the judge, on an H200: 0.666 x cuBLAS (95 %: 0.665 to 0.666), 12.234 ms, 1.55 x the speed
// of 08; 109 registers, 8192 B of shared memory, 2 blocks a multiprocessor.
// reports/h200/09_vector_loads.json has the rest.
// S. Boehm's SGEMM_CUDA has 78.4 % of cuBLAS at this step, tuned 84.8 %, on an RTX A6000 at 4096^3.

constexpr int BM = 128, BN = 128, BK = 8;
constexpr int TM = 8, TN = 8;

// Returns row[index] to row[index + 3], with zeros from `length` on.
__device__ float4 load4(const float* row, int index, int length, bool aligned) {
    if (aligned && index + 4 <= length) return *(const float4*)(row + index);
    return make_float4(
        index < length ? row[index] : 0.0f, index + 1 < length ? row[index + 1] : 0.0f,
        index + 2 < length ? row[index + 2] : 0.0f, index + 3 < length ? row[index + 3] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(256)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float tile_a[BK][BM];  // transposed
    __shared__ __align__(16) float tile_b[BK][BN];

    int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    bool aligned_a = N % 4 == 0 && (size_t)A % 16 == 0;
    bool aligned_b = K % 4 == 0 && (size_t)B % 16 == 0;

    // Each thread copies four consecutive floats of A and four of B per stage.
    int a_row = tid / (BK / 4), a_k = tid % (BK / 4) * 4;
    int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;

    float sum[TM][TN] = {};
    for (int n = 0; n < N; n += BK) {
        int a_length = row0 + a_row < M ? N : 0, b_length = n + b_k < N ? K : 0;
        float4 a4 = load4(A + (size_t)(row0 + a_row) * N, n + a_k, a_length, aligned_a);
        float4 b4 = load4(B + (size_t)(n + b_k) * K, col0 + b_col, b_length, aligned_b);
        tile_a[a_k + 0][a_row] = a4.x;
        tile_a[a_k + 1][a_row] = a4.y;
        tile_a[a_k + 2][a_row] = a4.z;
        tile_a[a_k + 3][a_row] = a4.w;
        *(float4*)&tile_b[b_k][b_col] = b4;
        __syncthreads();

        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
            for (int i = 0; i < TM; i += 4) *(float4*)&a[i] = *(float4*)&tile_a[k][ty * TM + i];
            for (int j = 0; j < TN; j += 4) *(float4*)&b[j] = *(float4*)&tile_b[k][tx * TN + j];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) {
            int row = row0 + ty * TM + i, col = col0 + tx * TN + j;
            if (row < M && col < K) C[(size_t)row * K + col] = sum[i][j];
        }
}
