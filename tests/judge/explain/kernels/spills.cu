// solve: tile=256x128
extern "C" __global__ void __launch_bounds__(256, 4) matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[8][256], b[8][128];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int top = blockIdx.y * 256, left = blockIdx.x * 128;
    float sum[16][8] = {};
    for (int n = 0; n < N; n += 8) {
        for (int i = thread; i < 8 * 256; i += 256) {
            int row = top + i / 8, inner = n + i % 8;
            a[i % 8][i / 8] = row < M && inner < N ? A[row * N + inner] : 0.0f;
        }
        for (int i = thread; i < 8 * 128; i += 256) {
            int inner = n + i / 128, col = left + i % 128;
            b[i / 128][i % 128] = inner < N && col < K ? B[inner * K + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++)
#pragma unroll
            for (int i = 0; i < 16; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += a[k][y + 16 * i] * b[k][x + 16 * j];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int row = top + y + 16 * i, col = left + x + 16 * j;
            if (row < M && col < K) C[row * K + col] = sum[i][j];
        }
}
