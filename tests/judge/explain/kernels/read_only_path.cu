// solve: tile=32x32
extern "C" __global__ void matrix_multiplication_kernel(const float* __restrict__ A,
                                                        const float* __restrict__ B, float* C,
                                                        int M, int N, int K) {
    int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 32, left = blockIdx.x * 32;
    float sum[2][2] = {};
    const float *rows[2], *cols[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        rows[i] = A + min(top + y + 16 * i, M - 1) * N;
        cols[i] = B + min(left + x + 16 * i, K - 1);
    }
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) sum[i][j] += __ldg(rows[i] + n) * __ldg(cols[j] + n * K);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int row = top + y + 16 * i, col = left + x + 16 * j;
            if (row < M && col < K) C[row * K + col] = sum[i][j];
        }
}
