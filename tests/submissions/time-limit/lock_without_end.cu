// Every thread of a warp tries to take a lock in a loop, and no thread releases it.
// expect: stage=verify message="" cpu="in line" seconds=0.3

__device__ int locked;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    while (atomicCAS(&locked, 0, 1) != 0) {}
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
