// Each block also writes the first column of the next block's tile. The result is right only if that
// block runs later, as in a loop over all blocks from the first to the last.
// expect: message="" cpu="between the two blocks" finding=race device=cpu quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (threadIdx.x == 15 && column + 1 < K) C[(size_t)row * K + column + 1] = sum;
    C[(size_t)row * K + column] = sum;
}
