// solve: tile=128x128
extern "C" __global__ void __launch_bounds__(256) matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[32][132], b[32][128];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int top = blockIdx.y * 128, left = blockIdx.x * 128;
    float sum[8][8] = {};
#pragma unroll 4
    for (int n = 0; n < N; n += 32) {
#pragma unroll
        for (int i = thread; i < 4096; i += 256) {
            int row = top + i / 32, inner = n + i % 32;
            a[i % 32][i / 32] = row < M && inner < N ? A[row * N + inner] : 0.0f;
            int col = left + i % 128;
            inner = n + i / 128;
            b[i / 128][i % 128] = inner < N && col < K ? B[inner * K + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) {
            float p[8], q[8];
#pragma unroll
            for (int i = 0; i < 8; i++) p[i] = a[k][i / 4 * 64 + 4 * y + i % 4];
#pragma unroll
            for (int j = 0; j < 8; j++) q[j] = b[k][j / 4 * 64 + 4 * x + j % 4];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += p[i] * q[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int row = top + i / 4 * 64 + 4 * y + i % 4, col = left + j / 4 * 64 + 4 * x + j % 4;
            if (row < M && col < K) C[row * K + col] = sum[i][j];
        }
}
