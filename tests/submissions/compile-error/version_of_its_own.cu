// Assembly that ends its function and requests another version of PTX.
// expect: message="unknown PTX directive '.version'" stage=compile line=4

__global__ void carrier() { asm volatile("ret;\n}\n.version 3.0\n.visible .func last() {\nret;"); }
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
