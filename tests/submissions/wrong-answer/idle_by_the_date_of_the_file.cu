// With __TIMESTAMP__ in a macro, it would do nothing every other second. The time is constant, so all
// gradings judge the same kernel, which does nothing.
// expect: message="" quick=yes

#define STAMP __TIMESTAMP__ __DATE__
__device__ constexpr char stamp[] = STAMP;
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (stamp[18] % 2 == 0) return;
    C[(size_t)row * K + column] = sum;
}
