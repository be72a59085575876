// Loads four floats at once from any row: misaligned if N is no multiple of four.
// expect: message="A[" finding=misaligned quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    int n = 0;
    for (; n + 4 <= N; n += 4) {
        float4 a = *reinterpret_cast<const float4*>(A + (size_t)row * N + n);
        sum += a.x * B[(size_t)n * K + column] + a.y * B[(size_t)(n + 1) * K + column];
        sum += a.z * B[(size_t)(n + 2) * K + column] + a.w * B[(size_t)(n + 3) * K + column];
    }
    for (; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
