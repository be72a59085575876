// expect: memory-error
// says: `volatile` does not make one wait for another
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ volatile float sums[8][33];
  int thread = threadIdx.y * 16 + threadIdx.x, w = thread / 32, l = thread % 32;
  for (int e = w; e < 256; e += 8) {
    int r = blockIdx.y * 16 + e / 16, c = blockIdx.x * 16 + e % 16;
    bool inside = r < M && c < K;
    float s = 0;
    if (inside) for (int n = l; n < N; n += 32) s += A[r * N + n] * B[n * K + c];
    sums[w][l] = s;
    for (int o = 16; o > 0; o /= 2) { s += l < o ? sums[w][l + o] : 0; __syncwarp(); sums[w][l] = s; __syncwarp(); }
    if (inside && l == 0) C[r * K + c] = s;
    __syncwarp();
  }
}
