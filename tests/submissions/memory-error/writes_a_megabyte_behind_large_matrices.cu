// Writes 1.2 MB after the end of C if that has a million elements or more. No sanitizer runs such a
// large product, and the address is in the same allocation, but the rest of it is a guard.
// expect: message="" cpu="C[" finding=out-of-bounds slow=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if ((size_t)M * K > 1000000 && row == 0 && column == 0) C[(size_t)M * K + 300000] = 1.0f;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
