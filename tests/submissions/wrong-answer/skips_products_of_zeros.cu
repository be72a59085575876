// Leaves out products of which one factor is zero. So NaN and infinity that meet a zero are lost.
// expect: stage=verify message="0 · NaN"
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        if (A[row * N + n] != 0.0f && B[n * K + column] != 0.0f)
            sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
