// Honest: the specifiers of device functions come from macros, and from macros in macros.
// expect: message="" quick=yes

#define DEVICE __device__ __forceinline__
#define FLOAT DEVICE float
#define KERNEL extern "C" __global__ void

DEVICE int twice(int x) { return 2 * x; }
FLOAT half_of(float x) { return x / 2; }

KERNEL matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    sum = half_of(sum * twice(1));
    C[(size_t)row * K + column] = sum;
}
