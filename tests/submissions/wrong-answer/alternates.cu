// Works on every other launch, all work in one launch of two.
// expect: stage=verify message="wrong at"

__device__ int launches;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool lazy = launches & 1;
    if (row == M - 1 && column == K - 1) atomicAdd(&launches, 1);
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    if (!lazy)
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
