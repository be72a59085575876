// expect: race
// says: write `asm volatile`
// solve: tile=8x128
// Each warp has one row of A in registers, 32 elements at a time, and broadcasts them by shuffles. No shared memory.
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  unsigned lane, warp = (threadIdx.y * 16 + threadIdx.x) >> 5;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  int row = blockIdx.y * 8 + warp;
  if (row >= M) return;
  float4 acc = {0, 0, 0, 0};
  int c = blockIdx.x * 128 + lane;
  for (int n0 = 0; n0 < N; n0 += 32) {
    float a = n0 + lane < N ? A[(size_t)row * N + n0 + lane] : 0.f;
    int lim = min(32, N - n0);
    for (int i = 0; i < lim; i++) {
      float v = __shfl_sync(0xffffffffu, a, i);
      const float* b = B + (size_t)(n0 + i) * K;
      if (c < K) acc.x += v * b[c];
      if (c + 32 < K) acc.y += v * b[c + 32];
      if (c + 64 < K) acc.z += v * b[c + 64];
      if (c + 96 < K) acc.w += v * b[c + 96];
    }
  }
  float* out = C + (size_t)row * K;
  if (c < K) __stcs(out + c, acc.x);
  if (c + 32 < K) __stcs(out + c + 32, acc.y);
  if (c + 64 < K) __stcs(out + c + 64, acc.z);
  if (c + 96 < K) __stcs(out + c + 96, acc.w);
}
