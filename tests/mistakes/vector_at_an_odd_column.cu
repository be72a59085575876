// expect: memory-error
// says: The index of a vector of 2 floats must be a multiple of 2.
// solve: tile=32x32
#include <cstdint>
__device__ __forceinline__ uint32_t r32(float x) { uint32_t y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y; }
__device__ __forceinline__ void mma4(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b0) { asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b0)); }
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float sa[32][20], sb[16][36];
  int t = threadIdx.y * 16 + threadIdx.x, w = t / 32, l = t % 32, g = l / 4, q = l % 4, wr = w % 2 * 16, wc = w / 2 * 8;
  float acc[4] = {}; 
  for (int k0 = 0; k0 < N; k0 += 16) {
    for (int i = t; i < 512; i += 256) { int r = i / 16, k = i % 16; sa[r][k] = blockIdx.y * 32 + r < M && k0 + k < N ? A[(size_t)(blockIdx.y * 32 + r) * N + k0 + k] : 0.f; }
    for (int i = t; i < 512; i += 256) { int k = i / 32, c = i % 32; sb[k][c] = k0 + k < N && blockIdx.x * 32 + c < K ? B[(size_t)(k0 + k) * K + blockIdx.x * 32 + c] : 0.f; }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k += 4) {
      float x0 = sa[wr + g][k + q], x1 = sa[wr + g + 8][k + q], y = sb[k + q][wc + g];
      uint32_t h0 = r32(x0), h1 = r32(x1), hy = r32(y);
      auto low = [](float x, uint32_t h) { return isfinite(x) ? r32(x - __uint_as_float(h)) : 0u; };
      uint32_t l0 = low(x0, h0), l1 = low(x1, h1), ly = low(y, hy);
      float z[4] = {};
      mma4(z, l0, l1, hy); mma4(z, h0, h1, ly); mma4(z, h0, h1, hy);
      for (int e = 0; e < 4; e++) acc[e] += z[e];
    }
    __syncthreads();
  }
  for (int h = 0; h < 2; h++) { int r = blockIdx.y * 32 + wr + g + 8 * h, c = blockIdx.x * 32 + wc + q; if (r < M) { if (K % 2 == 0 && c + 1 < K) *(float2*)(C + (size_t)r * K + c) = make_float2(acc[2 * h], acc[2 * h + 1]); else { if (c < K) C[(size_t)r * K + c] = acc[2 * h]; if (c + 1 < K) C[(size_t)r * K + c + 1] = acc[2 * h + 1]; } } }
}
