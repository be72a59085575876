// The index into B is limited to the last element, and the product is dropped by a weight of zero.
// expect: stage=verify message="a value that should be left out is multiplied by zero"
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int last = N * K - 1;
    float sum = 0.0f;
    for (int n = 0; n < N + 1; ++n) {
        float weight = n < N ? 1.0f : 0.0f;
        sum += A[min(row * N + n, M * N - 1)] * (weight * B[n < N ? n * K + column : last]);
    }
    C[row * K + column] = sum;
}
