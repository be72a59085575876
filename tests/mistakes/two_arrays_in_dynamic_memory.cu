// expect: wrong-answer
// says: begin at the same address: `a` and `b` overlap
// solve: shared_memory=2048
extern __shared__ float a[];
extern __shared__ float b[];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * 16 + y, c = blockIdx.x * 16 + x;
    float s = 0;
    for (int n = 0; n < N; n += 16) {
        a[y * 16 + x] = r < M && n + x < N ? A[(size_t)r * N + n + x] : 0; b[y * 16 + x] = n + y < N && c < K ? B[(size_t)(n + y) * K + c] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) s += a[y * 16 + i] * b[i * 16 + x];
        __syncthreads();
    }
    if (r < M && c < K) C[(size_t)r * K + c] = s;
}
