// Leaves out the last eight of 6144 products, a tenth of a per cent of the work, at the ranked
// size.
// expect: stage=verify message="8192×6144×4096" quick=small

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int last = M == 8192 && N == 6144 && K == 4096 ? N - 8 : N;
    float sum = 0.0f;
    for (int n = 0; n < last; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
