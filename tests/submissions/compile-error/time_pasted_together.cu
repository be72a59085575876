// __TIME__ is pasted from parts, so that each compilation would give another kernel.
// expect: message="time of compilation" stage=read

#define PASTE(a, b) a##b
#define NOW(a, b) PASTE(a, b)
__device__ constexpr char stamp[] = NOW(__TI, ME__);
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (stamp[7] % 2 == 0) return;
    C[(size_t)row * K + column] = sum;
}
