// expect: memory-error
// says: pad its rows so that each begins at a multiple of 16 bytes
// solve: tile=64x64
#include <cuda_bf16.h>
#include <cstdint>
using bf16 = __nv_bfloat16;
constexpr int BM = 64, BN = 64, BK = 16, PAD = 1;
__device__ __forceinline__ void ldsm_x4(uint32_t (&r)[4], const void* p) {
  uint32_t a = (uint32_t)__cvta_generic_to_shared(p);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a));
}
__device__ __forceinline__ void ldsm_x2_t(uint32_t (&r)[2], const void* p) {
  uint32_t a = (uint32_t)__cvta_generic_to_shared(p);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(a));
}
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void split3(float x, bf16& h, bf16& m, bf16& l) {
  h = __float2bfloat16_rn(x);
  float r = x - __bfloat162float(h);
  if (!isfinite(x)) r = 0.f;
  m = __float2bfloat16_rn(r);
  l = __float2bfloat16_rn(r - __bfloat162float(m));
}
__global__ __launch_bounds__(256) void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ alignas(16) bf16 As[3][BM][BK + PAD];
  __shared__ alignas(16) bf16 Bs[3][BK][BN + PAD];
  const int tid = threadIdx.y * 16 + threadIdx.x, warp = tid >> 5, lane = tid & 31;
  const int wm = (warp & 3) * 16, wn = (warp >> 2) * 32;
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  float big[4][4] = {}, small_[4][4] = {};
  for (int k0 = 0; k0 < N; k0 += BK) {
    for (int i = tid; i < BM * BK; i += 256) {
      int r = i / BK, c = i % BK;
      float x = (m0 + r < M && k0 + c < N) ? A[(size_t)(m0 + r) * N + k0 + c] : 0.f;
      split3(x, As[0][r][c], As[1][r][c], As[2][r][c]);
    }
    for (int i = tid; i < BK * BN; i += 256) {
      int r = i / BN, c = i % BN;
      float x = (k0 + r < N && n0 + c < K) ? B[(size_t)(k0 + r) * K + n0 + c] : 0.f;
      split3(x, Bs[0][r][c], Bs[1][r][c], Bs[2][r][c]);
    }
    __syncthreads();
    uint32_t a[3][4];
    for (int p = 0; p < 3; p++) ldsm_x4(a[p], &As[p][wm + lane % 16][lane / 16 * 8]);
    #pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t b[3][2];
      for (int p = 0; p < 3; p++) ldsm_x2_t(b[p], &Bs[p][lane % 16][wn + j * 8]);
      mma(small_[j], a[0], b[2]); mma(small_[j], a[2], b[0]); mma(small_[j], a[1], b[1]);
      mma(small_[j], a[0], b[1]); mma(small_[j], a[1], b[0]);
      float t[4] = {};
      mma(t, a[0], b[0]);
      for (int e = 0; e < 4; e++) big[j][e] += t[e];
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; j++)
    for (int e = 0; e < 4; e++) {
      int r = m0 + wm + lane / 4 + (e / 2) * 8, c = n0 + wn + j * 8 + lane % 4 * 2 + e % 2;
      if (r < M && c < K) C[(size_t)r * K + c] = big[j][e] + small_[j][e];
    }
}
