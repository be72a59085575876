// Stores two floats at once and checks only the first of them.
// solve: tile=16x32
// expect: message="C[" finding=out-of-bounds,misaligned

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x * 2;
    if (row >= M || column >= K) return;
    float first = 0.0f, second = 0.0f;
    for (int n = 0; n < N; n++) {
        float a = A[row * N + n];
        first += a * B[n * K + column];
        if (column + 1 < K) second += a * B[n * K + column + 1];
    }
    *reinterpret_cast<float2*>(C + (size_t)row * K + column) = make_float2(first, second);
}
