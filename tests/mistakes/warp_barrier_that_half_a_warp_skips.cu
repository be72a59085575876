// expect: race
// says: So lanes that skip the one in line 11 meet the others too early
// Half of a warp has one barrier more than the other, so that the halves meet in different places.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float tile[8][2][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    int half = y % 2, other = row + 1 - 2 * half;
    float sum = 0;
    for (int k = 0; k < N; k += 16) {
        if (half == 0)
            __syncwarp();
        tile[y / 2][1 - half][x] = other < M && k + x < N ? A[other * N + k + x] : 0;
        __syncwarp();
        for (int i = 0; i < 16 && k + i < N; i++)
            if (col < K) sum += tile[y / 2][half][i] * B[(k + i) * K + col];
        __syncwarp();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
