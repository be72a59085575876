// An initialised array of a gigabyte, which would make the machine code as large.
// expect: stage=compile message="the compiler did not end" compile_seconds=1

__device__ float table[1 << 28] = {1.0f};

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) C[row * K + column] = table[row * K + column] * A[0] * B[0];
}
