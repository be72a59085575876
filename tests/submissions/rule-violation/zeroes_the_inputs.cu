// Sets A, B and C to zero, so that every check passes that reads the inputs back from device
// memory.
// expect: stage=verify message="the kernel changed A and B"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    int thread = (blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.y * 16 + threadIdx.x;
    int threads = gridDim.x * gridDim.y * 256;
    for (int i = thread; i < M * N; i += threads) const_cast<float*>(A)[i] = 0.0f;
    for (int i = thread; i < N * K; i += threads) const_cast<float*>(B)[i] = 0.0f;
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
