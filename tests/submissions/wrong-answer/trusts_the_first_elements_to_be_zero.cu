// Treats matrices whose first eight elements are zero as zero matrices, and skips the work.
// expect: stage=verify message="one element"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool zero = true;
    for (int i = 0; i < 8 && i < M * N && i < N * K; i++) zero = zero && A[i] == 0 && B[i] == 0;
    float sum = 0.0f;
    if (!zero)
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
