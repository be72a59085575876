// Checks the range of its row, and sums in two parts if that is wide. The result is always correct,
// also for NaN, infinity and subnormal numbers.
// expect: message="" slow=yes
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    const float* a = A + (size_t)row * N;
    float largest = 0.0f;
    for (int n = 0; n < N; n++) largest = fmaxf(largest, fabsf(a[n]));
    float large = 0.0f, small = 0.0f;
    for (int n = 0; n < N; n++) {
        float product = a[n] * B[(size_t)n * K + column];
        if (fabsf(a[n]) < largest * 0x1p-12f)
            small += product;
        else
            large += product;
    }
    C[(size_t)row * K + column] = large + small;
}
