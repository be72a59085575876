// Each thread also writes the element below its own, which belongs to another thread. The result is
// right only if that thread runs later, as in a loop over all threads from the first to the last.
// expect: message="" cpu="no barrier between them" finding=race device=cpu quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (threadIdx.y < 15 && row + 1 < M) C[(size_t)(row + 1) * K + column] = sum;
    C[(size_t)row * K + column] = sum;
}
