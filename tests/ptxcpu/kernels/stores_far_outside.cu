__device__ float scratch[256];

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    scratch[row * 4096 + column + (1 << 26)] = A[row * N];
    C[row * K + column] = scratch[column];
}
