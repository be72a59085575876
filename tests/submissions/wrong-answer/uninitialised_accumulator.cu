// The sum is never set to zero. On a GPU, the register often happens to hold a small number.
// expect: stage=verify message="wrong at"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum;
    asm volatile("mov.b32 %0, %%clock;" : "=f"(sum));  // instead of an undefined value
    sum = __uint_as_float(__float_as_uint(sum) >> 8 | 0x3f000000u);
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
