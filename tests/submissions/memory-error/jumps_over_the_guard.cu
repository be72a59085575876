// Writes 100 KiB after C, beyond a guard of 64 KiB, where the judge's own data may lie.
// expect: message="C[" finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
    if (row == 0 && column == 0) C[(size_t)M * K + 25600] = 1.0f;
}
