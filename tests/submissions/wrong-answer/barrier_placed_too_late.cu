// Double buffering that is off by one step: each tile of B is multiplied with the next tile of A.
// It has no race, since all accesses are between barriers; only the result is wrong.
// expect: stage=verify message="wrong at" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[2][16][16], tile_b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    tile_a[0][ty][tx] = row < M && tx < N ? A[row * N + tx] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int n = 0, now = 0; n < N; n += 16, now ^= 1) {
        int next = n + 16 + tx;
        tile_a[now ^ 1][ty][tx] = row < M && next < N ? A[row * N + next] : 0.0f;
        tile_b[ty][tx] = n + ty < N && column < K ? B[(n + ty) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += tile_a[now ^ 1][ty][i] * tile_b[i][tx];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
