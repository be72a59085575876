// The loop is in inline PTX, where the compiler cannot see that it never ends.
// expect: stage=verify message="" cpu="in line" seconds=0.3

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    asm volatile("{ again: bra again; }" ::: "memory");
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
