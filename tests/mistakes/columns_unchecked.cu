// expect: memory-error
// says: right past its end
// says: whose column is K or more, must neither load nor store
// says: ^
__global__ void matrix_multiplication_kernel(const float*, const float*, float*, int, int, int);

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
