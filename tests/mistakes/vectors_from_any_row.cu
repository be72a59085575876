// expect: memory-error
// says: A row of A begins at a multiple of 16 bytes only if N is a multiple of 4
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.f;
    const float4* a = (const float4*)(A + row * N);
    for (int i = 0; i < N / 4; ++i) {
        float4 v = a[i];
        sum += v.x * B[(4 * i) * K + col] + v.y * B[(4 * i + 1) * K + col] +
               v.z * B[(4 * i + 2) * K + col] + v.w * B[(4 * i + 3) * K + col];
    }
    for (int i = N / 4 * 4; i < N; ++i) sum += A[row * N + i] * B[i * K + col];
    C[row * K + col] = sum;
}
