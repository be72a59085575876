// One thread, one element of C, with neighbouring threads on neighbouring ROWS.
//
// Idea: none yet; this is the definition of the product, written down. The one thing to learn is
// which way the threads lie. A warp reads memory in sectors of 32 bytes. Here threadIdx.x walks
// down the rows, so at every step the warp's 32 lanes read A at 16 addresses N floats apart: 16
// sectors to fetch 16 floats, of which 7/8 is thrown away. B is read at 2 addresses, and the
// stores of C are scattered in the same way as the reads of A.
//
// Expected gain: this is where the ladder stands on the ground. 03_coalesced.cu swaps x and y and
// changes nothing else.
// In the judge, on an H200: 0.019 x cuBLAS (95 %: 0.019 to 0.019), 423.604 ms; 32 registers,
// 0 B of shared memory, 8 blocks a multiprocessor. reports/h200/01_naive.json has the rest.
// Elsewhere: 1.3 % of cuBLAS on an RTX A6000 (S. Boehm, SGEMM_CUDA, 4096^3).

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.x;
    int col = blockIdx.x * 16 + threadIdx.y;
    if (row >= M || col >= K) return;

    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += A[(size_t)row * N + i] * B[(size_t)i * K + col];
    C[(size_t)row * K + col] = sum;
}
