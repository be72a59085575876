// One output a thread, straight from global memory, in blocks of SIDE x SIDE threads.

constexpr int SIDE = 16;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * SIDE + threadIdx.y;
    int col = blockIdx.x * SIDE + threadIdx.x;
    if (row >= M || col >= K) return;

    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += A[(size_t)row * N + i] * B[(size_t)i * K + col];
    C[(size_t)row * K + col] = sum;
}
