// One thread sets a counter in shared memory to zero. Then every thread increments it, without a
// barrier in between. If that one thread runs first, the count is right.
// expect: stage=sanitize message="" finding=race quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ unsigned counted;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (threadIdx.x + threadIdx.y == 0) counted = 0;
    unsigned before = atomicAdd(&counted, 1);
    if (row >= M || column >= K) return;
    float sum = before == 1u << 31 ? 1.0f : 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
