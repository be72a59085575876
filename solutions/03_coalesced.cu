// The naive kernel with x and y swapped: neighbouring threads on neighbouring COLUMNS.
//
// Idea: threadIdx.x, which runs fastest through a warp, now runs along a row of C. At every step
// the 16 lanes of a half-warp read 16 floats of B that lie side by side (64 bytes, two sectors,
// nothing thrown away) and all want the same float of A (one sector). The stores are contiguous
// too.
//
// Expected gain: about 4 sectors a warp and step instead of 18, so several times the speed of 01
// for two swapped letters. What stays: every thread reads 2N floats through the caches for N
// products.
// In the judge, on an H200: 0.096 x cuBLAS (95 %: 0.096 to 0.097), 84.414 ms, 5.02 x the speed
// of 01; 32 registers, 0 B of shared memory, 8 blocks a multiprocessor.
// reports/h200/03_coalesced.json has the rest.
// Elsewhere: 8.5 % of cuBLAS on an RTX A6000 (S. Boehm, SGEMM_CUDA, 4096^3).

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= K) return;

    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += A[(size_t)row * N + i] * B[(size_t)i * K + col];
    C[(size_t)row * K + col] = sum;
}
