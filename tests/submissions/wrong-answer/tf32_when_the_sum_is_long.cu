// FP32 for small matrices, but TF32's ten bits for long sums, as in timed launches.
// expect: stage=verify message="look like inputs of low precision" quick=yes

__device__ float cut(float x, bool low) {
    return __uint_as_float(low ? __float_as_uint(x) + 0x1000u & 0xffffe000u : __float_as_uint(x));
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool low = N >= 4096;
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        sum += cut(A[(size_t)row * N + n], low) * cut(B[(size_t)n * K + column], low);
    C[(size_t)row * K + column] = sum;
}
