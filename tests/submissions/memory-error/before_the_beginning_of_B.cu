// Reads the float before B, and uses it only in a way that does not change the result.
// expect: message="B[" finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    if (row == 0 && column == 0 && B[-1] == 42.0f) sum += 1.0f;
    C[row * K + column] = sum;
}
