// solve: tile=64x64
__device__ float4 four(const float* from, int row, int rows, int col, int cols, bool aligned) {
    if (row >= rows || col >= cols) return make_float4(0, 0, 0, 0);
    from += row * cols + col;
    if (aligned) return *(const float4*)from;
    return make_float4(from[0], col + 1 < cols ? from[1] : 0, col + 2 < cols ? from[2] : 0,
                       col + 3 < cols ? from[3] : 0);
}
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[16][64], b[16][64];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    bool aligned = N % 4 == 0 && K % 4 == 0;
    float sum[4][4] = {};
    for (int n = 0; n < N; n += 16) {
        float4 v = four(A, top + thread / 4, M, n + thread % 4 * 4, N, aligned);
        float4 w = four(B, n + thread / 16, N, left + thread % 16 * 4, K, aligned);
        a[thread % 4 * 4][thread / 4] = v.x;
        a[thread % 4 * 4 + 1][thread / 4] = v.y;
        a[thread % 4 * 4 + 2][thread / 4] = v.z;
        a[thread % 4 * 4 + 3][thread / 4] = v.w;
        *(float4*)&b[thread / 16][thread % 16 * 4] = w;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) {
            float4 p = *(float4*)&a[k][4 * y], q = *(float4*)&b[k][4 * x];
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
