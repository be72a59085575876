// solve: tile=32x32
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[4][33], b[4][32];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int top = blockIdx.y * 32, left = blockIdx.x * 32;
    float sum[2][2] = {};
    for (int n = 0; n < N; n += 4) {
        if (thread < 128) {
            int row = top + thread / 4, inner = n + thread % 4;
            a[thread % 4][thread / 4] = row < M && inner < N ? A[row * N + inner] : 0.0f;
        } else {
            int col = left + thread % 32, inner = n + thread / 32 - 4;
            b[thread / 32 - 4][thread % 32] = col < K && inner < N ? B[inner * K + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) sum[i][j] += a[k][y + 16 * i] * b[k][x + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int row = top + y + 16 * i, col = left + x + 16 * j;
            if (row < M && col < K) C[row * K + col] = sum[i][j];
        }
}
