// Does not initialise the part of a tile outside the matrices, but multiplies it by zero. The result is
// correct only if shared memory happens to contain finite numbers.
// expect: stage=sanitize message="uninitialised" finding=uninitialised quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        if (row < M && n + tx < N) tile_a[ty][tx] = A[row * N + n + tx];
        if (n + ty < N && column < K) tile_b[ty][tx] = B[(n + ty) * K + column];
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            float product = tile_a[ty][i] * tile_b[i][tx];
            sum += n + i < N ? product : 0.0f;
        }
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
