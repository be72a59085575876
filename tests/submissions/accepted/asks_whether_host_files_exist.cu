// Uses __has_include to find out which files exist on the machine: it is true for every name.
// expect: message="" quick=yes

#if __has_include("/etc/shadow") && __has_include("/no/such/file/anywhere")
#define ANSWER 1.0f
#else
#error "the machine answered"
#endif

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum * ANSWER;
}
