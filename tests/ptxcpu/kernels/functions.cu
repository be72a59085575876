// Calls of functions that are not inlined, with local arrays and two call sites.
__device__ __noinline__ float dot(const float* A, const float* B, int n, int stride) {
    float part[4] = {0, 0, 0, 0};
    for (int i = 0; i < n; ++i) part[i & 3] += A[i] * B[i * stride];
    return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int half = N / 2;
    C[row * K + column] = dot(A + row * N, B + column, half, K) +
                          dot(A + row * N + half, B + half * K + column, N - half, K);
}
