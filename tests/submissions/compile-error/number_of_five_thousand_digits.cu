// A number in assembly that is longer than Python's limit: reading it would be an error of the judge.
// expect: message="expected an integer" stage=compile

#define TEN "1111111111"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define FIVE_HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
#define THOUSAND FIVE_HUNDRED FIVE_HUNDRED
#define FIVE_THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    asm volatile("{ .local .b8 x[" FIVE_THOUSAND "]; ld.local.f32 %0, [x]; }" : "+f"(sum));
    C[(size_t)row * K + column] = sum;
}
