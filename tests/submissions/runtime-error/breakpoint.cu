// An instruction for debuggers: brkpt.
// expect: stage=verify message="" cpu="brkpt"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    asm volatile("brkpt;");
    if (row < M && column < K) C[row * K + column] = A[0] * B[0] * N;
}
