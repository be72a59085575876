// Honest: variables whose first values are addresses inside an array.
// expect: message="" quick=yes

__device__ float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ float* two = &numbers[1];
__device__ float* table[] = {numbers + 3, numbers + 4 - 2};

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    sum += *table[1] - *two - 1.0f;
    C[(size_t)row * K + column] = sum;
}
