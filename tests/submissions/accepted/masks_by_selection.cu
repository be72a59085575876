// Threads outside the matrix read its first element but take zero. See masks_by_multiplication.cu.
// expect: message="" quick=yes
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float As[16][16], Bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        bool in_A = row < M && n + x < N, in_B = n + y < N && column < K;
        float a = A[in_A ? row * N + n + x : 0], b = B[in_B ? (n + y) * K + column : 0];
        As[y][x] = in_A ? a : 0.0f;
        Bs[y][x] = in_B ? b : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
