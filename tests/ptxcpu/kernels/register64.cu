// A 64x64 tile, 4x4 results per thread, vector loads where a row allows it.
#define BM 64
#define BK 16
extern "C" __global__ __launch_bounds__(256) void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float As[BK][BM];
    __shared__ __align__(16) float Bs[BK][BM];
    int tx = threadIdx.x, ty = threadIdx.y, id = ty * 16 + tx;
    int row0 = blockIdx.y * BM, column0 = blockIdx.x * BM;
    float sum[4][4] = {};
    for (int start = 0; start < N; start += BK) {
        for (int i = 0; i < 4; ++i) {
            int r = id / 16 + 16 * i, c = id % 16;
            As[c][r] = row0 + r < M && start + c < N ? A[(row0 + r) * N + start + c] : 0.0f;
        }
        int r = start + id / 16, c = column0 + id % 16 * 4;
        float4 b = make_float4(0, 0, 0, 0);
        if (r < N && K % 4 == 0 && c < K) b = *(const float4*)&B[r * K + c];
        else if (r < N) {
            b.x = c < K ? B[r * K + c] : 0; b.y = c + 1 < K ? B[r * K + c + 1] : 0;
            b.z = c + 2 < K ? B[r * K + c + 2] : 0; b.w = c + 3 < K ? B[r * K + c + 3] : 0;
        }
        *(float4*)&Bs[id / 16][id % 16 * 4] = b;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float4 x = *(const float4*)&As[k][ty * 4], y = *(const float4*)&Bs[k][tx * 4];
            float a[4] = {x.x, x.y, x.z, x.w}, q[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += a[i] * q[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int r = row0 + ty * 4 + i, c = column0 + tx * 4 + j;
            if (r < M && c < K) C[r * K + c] = sum[i][j];
        }
}
