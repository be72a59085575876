// Computes whole tiles only: blocks that extend over the edge of C do nothing.
// expect: stage=verify message="never written" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (blockIdx.y * 16 + 16 > M || blockIdx.x * 16 + 16 > K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
