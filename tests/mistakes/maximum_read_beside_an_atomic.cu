// expect: race
// says: read it by an atomic, too

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ int rows;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (threadIdx.x + threadIdx.y == 0) rows = 0;
    __syncthreads();
    if (row < M && rows <= (int)threadIdx.y) atomicMax(&rows, (int)threadIdx.y + 1);
    __syncthreads();
    if ((int)threadIdx.y >= rows || column >= K) return;
    float sum = 0;
    for (int n = 0; n < N; ++n) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
