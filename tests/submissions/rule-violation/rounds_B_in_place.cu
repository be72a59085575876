// Rounds B to TF32 in place, so that the result is exact for the changed inputs.
// expect: stage=verify message="the kernel changed B"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float b = __uint_as_float(__float_as_uint(B[n * K + column]) & 0xffffe000u);
        const_cast<float*>(B)[n * K + column] = b;
        sum += A[row * N + n] * b;
    }
    C[row * K + column] = sum;
}
