// A 128x128 tile, 8x8 results per thread, shared memory in two buffers. Sizes in multiples of 8.
#define BM 128
#define BK 8
__device__ float4 row_of_four(const float* X, int row, int rows, int column, int columns) {
    if (row < rows && column + 3 < columns) return *(const float4*)&X[row * columns + column];
    return make_float4(0, 0, 0, 0);
}
extern "C" __global__ __launch_bounds__(256) void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float As[2][BK][BM], Bs[2][BK][BM];
    int tx = threadIdx.x, ty = threadIdx.y, id = ty * 16 + tx;
    int row0 = blockIdx.y * BM, column0 = blockIdx.x * BM, buffer = 0;
    int ar = id / 2, ac = id % 2 * 4, br = id / 32, bc = id % 32 * 4;
    float sum[8][8] = {};
    for (int start = 0; start < N; start += BK) {
        float4 a = row_of_four(A, row0 + ar, M, start + ac, N);
        float4 b = row_of_four(B, start + br, N, column0 + bc, K);
        As[buffer][ac][ar] = a.x; As[buffer][ac + 1][ar] = a.y;
        As[buffer][ac + 2][ar] = a.z; As[buffer][ac + 3][ar] = a.w;
        *(float4*)&Bs[buffer][br][bc] = b;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float x[8], y[8];
            *(float4*)&x[0] = *(const float4*)&As[buffer][k][ty * 4];
            *(float4*)&x[4] = *(const float4*)&As[buffer][k][64 + ty * 4];
            *(float4*)&y[0] = *(const float4*)&Bs[buffer][k][tx * 4];
            *(float4*)&y[4] = *(const float4*)&Bs[buffer][k][64 + tx * 4];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
        }
        buffer ^= 1;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        int row = row0 + i / 4 * 64 + ty * 4 + i % 4;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int column = column0 + h * 64 + tx * 4;
            float* s = &sum[i][4 * h];
            if (row < M && column + 3 < K)
                *(float4*)&C[row * K + column] = make_float4(s[0], s[1], s[2], s[3]);
        }
    }
}
