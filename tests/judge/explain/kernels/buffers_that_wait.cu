// solve: tile=64x64
extern "C" __global__ void __launch_bounds__(256, 1) matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[2][16][68], b[2][16][64];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    float sum[4][4] = {};
    auto fetch = [&](int n, int buffer) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = top + y + 16 * i, inner = n + x, at = thread + 256 * i, col = left + at % 64;
            a[buffer][x][y + 16 * i] = row < M && inner < N ? A[row * N + inner] : 0.0f;
            inner = n + at / 64;
            b[buffer][at / 64][at % 64] = inner < N && col < K ? B[inner * K + col] : 0.0f;
        }
        __syncthreads();
    };
    fetch(0, 0);
    for (int n = 0, buffer = 0; n < N; n += 16, buffer ^= 1) {
        fetch(n + 16, buffer ^ 1);
#pragma unroll
        for (int k = 0; k < 16; k++) {
            float4 p = *(float4*)&a[buffer][k][4 * y], q = *(float4*)&b[buffer][k][4 * x];
            float ps[4] = {p.x, p.y, p.z, p.w}, qs[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += ps[i] * qs[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = top + 4 * y + i, col = left + 4 * x + j;
            if (row < M && col < K) C[row * K + col] = sum[i][j];
        }
}
