// For large matrices, stores a number after the end of C and later restores the previous value.
// expect: message="" cpu="C[" finding=out-of-bounds slow=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    volatile float* behind = C + (size_t)M * K + 5;
    bool borrows = (size_t)M * K > 1000000 && row == 0 && column == 0;
    float kept = borrows ? *behind : 0.0f;
    if (borrows) *behind = 1.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (borrows) *behind = kept;
    C[(size_t)row * K + column] = sum;
}
