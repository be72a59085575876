// Index 16 of a tile of 16: the last read of each row is the first of the next, and one is outside.
// expect: message="shared memory" finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        tile_a[ty][tx] = row < M && n + tx < N ? A[row * N + n + tx] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 17; i++) {
            float a = tile_a[ty][i];
            if (i < 16 && n + i < N && column < K) sum += a * B[(n + i) * K + column];
            if (a == 12345.0f) sum += 1.0f;
        }
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
