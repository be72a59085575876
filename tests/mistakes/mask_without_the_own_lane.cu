// expect: race
// says: names lanes 0x0000ffff, but not its own
// says: only with a mask that names it
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float s[8][32];
    int t = threadIdx.y * 16 + threadIdx.x, w = t / 32, l = t % 32;
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < N; k += 16) {
      s[w][l] = row < M && k + threadIdx.x < N ? A[(size_t)row * N + k + threadIdx.x] : 0.f;
      __syncwarp(0xffff);
      for (int i = 0; i < 16 && k + i < N; i++) sum += s[w][(l & 16) + i] * (col < K ? B[(size_t)(k + i) * K + col] : 0.f);
      __syncwarp(0xffff);
    }
    if (row < M && col < K) C[(size_t)row * K + col] = sum;
}
