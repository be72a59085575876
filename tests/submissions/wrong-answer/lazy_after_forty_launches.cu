// Honest for forty launches, then a constant: for judges that check first and time later.
// expect: stage=verify message="wrong at"

__device__ int launches;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool lazy = launches > 40;
    if (row == 0 && column == 0) atomicAdd(&launches, 1);
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    if (!lazy)
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
