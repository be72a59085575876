// Writes far past the end of its own __device__ buffer.
// expect: message="" cpu="module memory" finding=out-of-bounds quick=yes

__device__ float scratch[256];

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    scratch[row * 4096 + column] = sum;
    C[row * K + column] = sum;
}
