// A published student kernel: the number of tiles is N / 16 rounded down, so the last, partial tile
// of every sum is dropped. The result is right if N is a multiple of 16.
// expect: stage=verify message="products of each sum are missing (N mod 16)" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int tile = 0; tile < N / 16; tile++) {
        int n = tile * 16;
        tile_a[ty][tx] = row < M ? A[row * N + n + tx] : 0.0f;
        tile_b[ty][tx] = column < K ? B[(n + ty) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
