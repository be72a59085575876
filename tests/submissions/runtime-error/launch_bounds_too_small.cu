// __launch_bounds__ promises at most 128 threads per block, but the judge launches 256.
// expect: stage=compile message="allow 128 threads per block; the launch has 256"

extern "C" __global__ void __launch_bounds__(128)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) C[row * K + column] = A[0] * B[0] * N;
}
