// Every thread waits for a flag in device memory that no thread sets.
// expect: stage=verify message="" cpu="in line" seconds=0.3 slow=yes

__device__ volatile int flag;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    while (flag == 0) {}
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
