// expect: rule-violation
// says: The first two parameters are the inputs A and B, and the third is the output C.
__global__ void matrix_multiplication_kernel(float* C, const float* A, const float* B, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
