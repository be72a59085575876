// Each thread reads its own results through the read-only cache, which may hold old values.
// expect: message="" cpu="the read-only path" finding=race quick=cpu device=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        sum += A[row * N + n] * B[n * K + column];
        C[row * K + column] = sum;
        if (n + 1 == N) C[row * K + column] = __ldg(&C[row * K + column]);
    }
}
