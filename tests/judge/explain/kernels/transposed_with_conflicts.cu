// solve: tile=64x64
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[64][16], b[64][16];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int n = 0; n < N; n += 16) {
#pragma unroll
        for (int i = thread; i < 1024; i += 256) {
            int row = top + i / 16, inner = n + i % 16, col = left + i % 64;
            a[i / 16][i % 16] = row < M && inner < N ? A[row * N + inner] : 0.0f;
            inner = n + i / 64;
            b[i % 64][i / 64] = inner < N && col < K ? B[inner * K + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += a[y + 16 * i][k] * b[x + 16 * j][k];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = top + y + 16 * i, col = left + x + 16 * j;
            if (row < M && col < K) C[row * K + col] = sum[i][j];
        }
}
