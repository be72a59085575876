// __umul24 for the row offset, an optimisation for old GPUs, is correct only up to 2^24. At the ranked
// size the offsets inside A go to 2^25.6. To stay inside the matrix, the kernel reads row 0 for rows
// past 2730.
// expect: stage=verify message="8192×6144×4096" quick=few slow=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    unsigned start = (unsigned)row * N;
    const float* a = A + (start < (1u << 24) ? start : 0u);
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += a[n] * B[n * K + column];
    C[row * K + column] = sum;
}
