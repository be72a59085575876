// expect: memory-error
// says: `volatile` does not make one wait for another
// solve: tile=4x2
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float sh[8][64];
    int t = threadIdx.y * 16 + threadIdx.x, w = t / 32, l = t % 32, r = blockIdx.y * 4 + w / 2, c = blockIdx.x * 2 + w % 2;
    float s = 0;
    if (r < M && c < K) for (int n = l; n < N; n += 32) s += A[(size_t)r * N + n] * B[(size_t)n * K + c];
    volatile float* v = sh[w];
    v[l] = s; v[l + 32] = 0;
    v[l] += v[l + 16]; v[l] += v[l + 8]; v[l] += v[l + 4]; v[l] += v[l + 2]; v[l] += v[l + 1];
    if (l == 0 && r < M && c < K) C[(size_t)r * K + c] = v[0];
}
