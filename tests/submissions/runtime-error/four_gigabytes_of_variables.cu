// A variable of exactly 4 GiB, whose size in 32 bits is 0. A disassembler with 32-bit sizes would fail,
// and the judge could not tell whether the kernel uses tensor cores.
// expect: message="a submission gets at most" stage=compile

__device__ char big[1ull << 32];
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (M < 0) sum = big[(size_t)K << 20];
    C[(size_t)row * K + column] = sum;
}
