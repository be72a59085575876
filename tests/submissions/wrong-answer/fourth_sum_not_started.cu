// Four sums in registers, of which only three are set to zero first.
// expect: stage=verify message="an accumulator that was not set to zero" quick=yes

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sums[4];
    for (int i = 0; i < 3; i++) sums[i] = 0.0f;
    for (int n = 0; n < N; n += 4)
        for (int i = 0; i < 4; i++)
            if (n + i < N) sums[i] += A[row * N + n + i] * B[(n + i) * K + column];
    C[row * K + column] = sums[0] + sums[1] + sums[2] + sums[3];
}
