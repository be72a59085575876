// The row is not checked: the last block reads past A and writes past C.
// expect: message="C[" line=11 finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += row < M ? A[row * N + n] * B[n * K + column] : 0.0f;
    C[row * K + column] = sum;
}
