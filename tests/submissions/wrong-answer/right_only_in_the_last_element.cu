// Computes only the last element, against judges that check no other. All others are a constant.
// expect: stage=verify message="wrong at" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 1.0f;
    if (row == M - 1 && column == K - 1) {
        sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    }
    C[row * K + column] = sum;
}
