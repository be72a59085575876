// solve: tile=512x512
__device__ float transposed[1 << 26];
__device__ unsigned drawn, done, finished;
__device__ unsigned draw() {
    __shared__ unsigned ticket;
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) ticket = atomicAdd(&drawn, 1u);
    __syncthreads();
    return ticket;
}
__device__ void add_one(unsigned* counter) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x + threadIdx.y == 0) atomicAdd(counter, 1u);
}
extern "C" __global__ void __launch_bounds__(256, 2) matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float a[16][64], b[16][64];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    int rows = (M + 15) / 16, units = rows * ((N + 15) / 16);
    for (int unit = draw(); unit < units; unit = draw()) {
        int row = unit % rows * 16 + y, inner = unit / rows * 16 + x;
        if (row < M && inner < N) transposed[inner * M + row] = A[row * N + inner];
        add_one(&done);
    }
    if (thread == 0)
        while (atomicAdd(&done, 0u) < (unsigned)units) {}
    __threadfence();
    __syncthreads();
    int across = (K + 63) / 64, tiles = across * ((M + 63) / 64);
    for (int tile = block; tile < tiles; tile += blocks) {
        int top = tile / across * 64, left = tile % across * 64;
        float sum[4][4] = {};
        for (int n = 0; n < N; n += 16) {
#pragma unroll
            for (int i = thread; i < 1024; i += 256) {
                int inner = n + i / 64, row = top + i % 64, col = left + i % 64;
                a[i / 64][i % 64] = inner < N && row < M ? transposed[inner * M + row] : 0.0f;
                b[i / 64][i % 64] = inner < N && col < K ? B[inner * K + col] : 0.0f;
            }
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
    __syncthreads();
    if (thread == 0 && atomicAdd(&finished, 1u) == blocks - 1) drawn = done = finished = 0;
}
