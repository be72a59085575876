// expect: compile-error
// says: identifier "factor" is undefined
struct V { float x; __device__ V(float y) : x(y) {} };
__device__ V operator*(V a, V b) { return V(a.x * factor); }
template <class T> __device__ V operator*(T a, V b) { return V(a.x * b.x); }
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0;
    for (int n = 0; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + col];
    C[(size_t)row * K + col] = (V(sum) * V(1.0f)).x;
}
