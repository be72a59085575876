// A __device__ buffer of 400 GB, which no GPU has.
// expect: stage=compile message="__device__"

__device__ float pool[100000000000ULL];

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = pool[(size_t)row * K + column] = sum;
}
