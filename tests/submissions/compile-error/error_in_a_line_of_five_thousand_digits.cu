// Makes the compiler print a text that looks like one of its errors, in a line that no file has.
// expect: message="static assertion failed" line=14

#define TEN "2222222222"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define FIVE_HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
#define THOUSAND FIVE_HUNDRED FIVE_HUNDRED
#define FIVE_THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    static_assert(false, "\nkernel.cu(" FIVE_THOUSAND "): error: forged");
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
