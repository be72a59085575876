// At the ranked size, one of 33 million elements, in the middle, gets only half of its products.
// The CPU device compares only some blocks of that size; a GPU compares all.
// expect: device=cuda stage=verify message="8192×6144×4096"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    bool half = ranked && row == 4567 && column == 1234;
    float sum = 0.0f;
    for (int n = 0; n < (half ? N / 2 : N); n++)
        sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
