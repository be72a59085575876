// expect: wrong-answer
// says: as if rows and columns were swapped: blocks along x are columns
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < K) {
        float acc = 0.f;
        for (int i = 0; i < N; ++i) acc += A[row * N + i] * B[i * K + col];
        C[row * K + col] = acc;
    }
}
