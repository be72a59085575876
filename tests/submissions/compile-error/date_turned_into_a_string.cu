// __DATE__ is pasted from parts and then converted to a string.
// expect: message="time of compilation" stage=read

#define PASTE(a, b) a##b
#define STRING(x) #x
#define QUOTED(x) STRING(x)
__device__ constexpr char stamp[] = QUOTED(PASTE(__DA, TE__));
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (stamp[6] % 2 == 0) return;
    C[(size_t)row * K + column] = sum;
}
