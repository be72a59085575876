// The kernel's name comes from a macro; the name in the compiled program is checked.
// expect: message="" quick=yes

#define JOIN(a, b) a##b

extern "C" __global__ void JOIN(matrix_multiplication, _kernel)(const float* A, const float* B,
                                                                float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
