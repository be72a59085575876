// The tiles are loaded without a check against N: past the end of a row they contain the next row, and
// past the last row memory outside the matrix.
// expect: message="A[" finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        tile_a[ty][tx] = row < M ? A[row * N + n + tx] : 0.0f;
        tile_b[ty][tx] = n + ty < N && column < K ? B[(n + ty) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16 && n + i < N; i++) sum += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
