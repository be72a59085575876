// expect: race
// says: The lanes that a warp-wide instruction reads must reach it
// All lanes named in a shuffle that only threads inside C reach.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    if (row < M && col < K) {
        float s = 0;
        for (int k = 0; k < N; k += 16) {
            float mine = k + x < N ? A[row * N + k + x] : 0;
            for (int i = 0; i < 16 && k + i < N; i++) s += __shfl_sync(0xffffffff, mine, i, 16) * B[(k + i) * K + col];
        }
        C[row * K + col] = s;
    }
}
