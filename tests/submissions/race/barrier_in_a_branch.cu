// __syncthreads stands in a branch that not every thread of the block takes.
// expect: message="barrier" finding=divergent-barrier,deadlock quick=small

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float row_of_a[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        row_of_a[ty][tx] = row < M && n + tx < N ? A[row * N + n + tx] : 0.0f;
        if (column < K) {
            __syncthreads();
            for (int i = 0; i < 16 && n + i < N; i++)
                sum += row_of_a[ty][i] * B[(n + i) * K + column];
        }
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
