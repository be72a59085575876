// Computes in FP32 at all sizes except the ranked one.
// expect: stage=verify message="8192×6144×4096" quick=small

__device__ float cut(float x, bool low) {
    return __uint_as_float(low ? __float_as_uint(x) + 0x1000u & 0xffffe000u : __float_as_uint(x));
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool low = M == 8192 && N == 6144 && K == 4096;
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        sum += cut(A[(size_t)row * N + n], low) * cut(B[(size_t)n * K + column], low);
    C[(size_t)row * K + column] = sum;
}
