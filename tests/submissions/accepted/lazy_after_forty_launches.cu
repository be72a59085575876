// Honest for forty launches. Its counter never reaches that, because variables have their initial
// values in every launch.
// expect: message="" quick=yes

__device__ int launches;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool first = row == 0 && column == 0;
    bool lazy = atomicAdd(&launches, first ? 1 : 0) > 40;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    if (!lazy)
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
