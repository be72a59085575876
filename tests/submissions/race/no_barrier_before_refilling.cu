// The barrier between reading the tiles and filling them again is missing: the fast warps overwrite
// the data that slow ones still read. The result is often correct by chance.
// expect: message="" cpu="no barrier between them" finding=race quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        tile_a[ty][tx] = row < M && n + tx < N ? A[row * N + n + tx] : 0.0f;
        tile_b[ty][tx] = n + ty < N && column < K ? B[(n + ty) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += tile_a[ty][i] * tile_b[i][tx];
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
