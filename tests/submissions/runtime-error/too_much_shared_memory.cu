// Requests more dynamic shared memory than any block can have.
// solve: tile=16x16 shared_memory=300000
// expect: stage=compile message="300000 bytes of shared memory"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    extern __shared__ float tile[];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    tile[threadIdx.y * 16 + threadIdx.x] = A[0];
    if (row < M && column < K) C[row * K + column] = tile[0] * B[0] * N;
}
