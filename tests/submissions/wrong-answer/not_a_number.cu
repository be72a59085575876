// Stores NaN everywhere. A comparison such as error > limit is false for NaN.
// expect: stage=verify message="not finite" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) C[row * K + column] = __uint_as_float(0x7fffffffu);
}
