// Byte offsets in 32 bits become negative beyond 2 GiB. Rows are numbered from a large base, as in a
// kernel that treats a batch of matrices as one.
// expect: message="" cpu="A[" finding=out-of-bounds

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int base = (row + 3000000) * N * 4;  // overflows if N is 180 or more
    long long start = (long long)base - (long long)3000000 * N * 4;
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        sum += *(const float*)((const char*)A + start + n * 4) * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
