// __trap() in one thread of the launch.
// expect: stage=verify message="" cpu="line 7"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row == 0 && column == 0) __trap();
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
