// Takes subnormal elements of B for zero, as instructions with .ftz do, but not those of A.
// expect: stage=verify message="B uniform, all scaled by 2^-126"
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float b = B[n * K + column];
        sum += A[row * N + n] * (fabsf(b) < 0x1p-126f ? 0.0f : b);
    }
    C[row * K + column] = sum;
}
