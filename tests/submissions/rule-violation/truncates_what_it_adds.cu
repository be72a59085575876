// Drops the bits of each addend below the last bit of the sum, as tensor cores do. This is accurate
// enough if signs are random or sums are short, but not if thousands of positive products are added.
// expect: device=cuda stage=measure message="inputs of the kind \"positive\""

__device__ float truncated(float x, float sum) {
    float power_of_two = __uint_as_float(__float_as_uint(sum) & 0x7f800000);
    return copysignf(__fadd_rz(power_of_two, fabsf(x)) - power_of_two, x);
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 4) {
        float part = 0.0f;
        for (int i = n; i < N && i < n + 4; i++)
            part += A[(size_t)row * N + i] * B[(size_t)i * K + column];
        sum += truncated(part, sum);
    }
    C[(size_t)row * K + column] = sum;
}
