// Each thread computes one element of C, and neighbouring threads have neighbouring ROWS.
//
// Idea: this is the definition of the product. The lesson is how threads map to elements. A warp
// reads memory in sectors of 32 bytes. Here threadIdx.x is the row, so in every step the 32 lanes
// of a warp read A at 16 addresses, N floats apart. They fetch 16 sectors for 16 floats and discard
// 7/8 of the data. B is read at 2 addresses. The stores of C are scattered like the reads of A.
//
// Inputs: FP32 sums, about as accurate as cuBLAS on all inputs (grade A), as 02 to 17 and 21.
//
//     warp:   lane  0   1  ... 15  16  17  ... 31
//             row   0   1  ... 15   0   1  ... 15       column 0 in lanes 0-15, 1 in lanes 16-31
//
// Expected gain: none; this is the reference for the others. 03_coalesced.cu only swaps x and y.
// In the judge, on an H200: 0.019 x cuBLAS (95 %: 0.019 to 0.019), 423.824 ms; 32 registers,
// 0 B of shared memory, 8 blocks a multiprocessor. reports/h200/01_naive.json has the rest.
// S. Boehm's SGEMM_CUDA has 1.3 % of cuBLAS at this step, on an RTX A6000 at 4096^3.

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.x;
    int col = blockIdx.x * 16 + threadIdx.y;
    if (row >= M || col >= K) return;

    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += A[(size_t)row * N + i] * B[(size_t)i * K + col];
    C[(size_t)row * K + col] = sum;
}
