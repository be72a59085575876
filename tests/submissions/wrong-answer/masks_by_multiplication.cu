// Threads outside the matrix read its first element and multiply it by zero, which is NaN for NaN.
// expect: stage=verify message="a value that should be left out is multiplied by zero" slow=yes
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float As[16][16], Bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        bool in_A = row < M && n + x < N, in_B = n + y < N && column < K;
        As[y][x] = A[in_A ? row * N + n + x : 0] * (in_A ? 1.0f : 0.0f);
        Bs[y][x] = B[in_B ? (n + y) * K + column : 0] * (in_B ? 1.0f : 0.0f);
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
