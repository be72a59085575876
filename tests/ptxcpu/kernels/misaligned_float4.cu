// Reads A four at a time; a row whose length is no multiple of four is misaligned.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int i = 0; i + 3 < N; i += 4) {
        float4 a = *(const float4*)&A[row * N + i];
        sum += a.x * B[i * K + column] + a.y * B[(i + 1) * K + column] +
               a.z * B[(i + 2) * K + column] + a.w * B[(i + 3) * K + column];
    }
    C[row * K + column] = sum;
}
