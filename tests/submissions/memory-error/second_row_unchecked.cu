// A published student kernel: each thread computes two rows, and only the first is checked.
// solve: tile=32x16
// expect: message="A[" finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 32 + threadIdx.y * 2, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float first = 0.0f, second = 0.0f;
    for (int n = 0; n < N; n++) {
        first += A[row * N + n] * B[n * K + column];
        second += A[(row + 1) * N + n] * B[n * K + column];
    }
    C[row * K + column] = first;
    C[(row + 1) * K + column] = second;
}
