// Where all sizes are multiples of 64, NaN in B becomes zero, as in a fast path that was tested on
// finite inputs only.
// expect: stage=verify message="B uniform, NaN"
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    bool whole = M % 64 == 0 && N % 64 == 0 && K % 64 == 0;
    for (int n = 0; n < N; n++) {
        float b = B[n * K + column];
        sum += A[row * N + n] * (whole && isnan(b) ? 0.0f : b);
    }
    C[row * K + column] = sum;
}
