// The naive kernel of a published profiler table, for one block of 32x32 threads and width 32.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += A[row * N + i] * B[i * K + column];
    C[row * K + column] = sum;
}
