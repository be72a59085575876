// expect: memory-error
// says: A matrix descriptor has the first address
// solve: tile=128x64 shared_memory=49152
#include <cstdint>
__device__ __forceinline__ float tf32r(float x) { uint32_t r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return __uint_as_float(r); }
__device__ __forceinline__ uint64_t desc(const void* p, uint32_t lbo, uint32_t sbo) {
  uint32_t a = (uint32_t)__cvta_generic_to_shared(p);
  return (uint64_t)((a & 0x3ffff) >> 4) | (uint64_t)(sbo >> 4) << 16 | (uint64_t)(lbo >> 4) << 32;
}
__device__ __forceinline__ void wgmma(float (&d)[32], uint64_t a, uint64_t b, int scale) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1;\n}"
    : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),
      "+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31])
    : "l"(a), "l"(b), "r"(scale));
}
constexpr int BM = 128, BN = 64, BK = 32;
extern __shared__ __align__(128) float sm[];
__global__ void __launch_bounds__(256) matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  float *ah = sm, *al = ah + BM * BK, *bh = al + BM * BK, *bl = bh + BN * BK;
  int t = threadIdx.y * 16 + threadIdx.x, wg = t / 128, m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  float acc[32] = {}, part[32];
  for (int k0 = 0; k0 < N; k0 += BK) {
    for (int i = t; i < BM * BK; i += 256) { int r = i / BK, k = i % BK; float x = m0 + r < M && k0 + k < N ? A[(size_t)(m0 + r) * N + k0 + k] : 0.f; float h = tf32r(x); int o = k / 4 * BM * 4 + r * 4 + k % 4; ah[o] = h; al[o] = isfinite(h) ? tf32r(x - h) : 0.f; }
    for (int i = t; i < BN * BK; i += 256) { int c = i % BN, k = i / BN; float x = n0 + c < K && k0 + k < N ? B[(size_t)(k0 + k) * K + n0 + c] : 0.f; float h = tf32r(x); int o = k / 4 * BN * 4 + c * 4 + k % 4; bh[o] = h; bl[o] = isfinite(h) ? tf32r(x - h) : 0.f; }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < BK; k += 8) {
      int oa = k / 4 * BM * 4 + wg * 64 * 4, ob = k / 4 * BN * 4;
      wgmma(part, desc(al + oa, BM * 16, 128), desc(bh + ob, BN * 16, 128), k > 0);
      wgmma(part, desc(ah + oa, BM * 16, 128), desc(bl + ob, BN * 16, 128), 1);
      wgmma(part, desc(ah + oa, BM * 16, 128), desc(bh + ob, BN * 16, 128), 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 32; i++) { asm volatile("" : "+f"(part[i]) :: "memory"); acc[i] += part[i]; }
    __syncthreads();
  }
  int w = t % 128 / 32, l = t % 32;
  for (int i = 0; i < 32; i++) { int r = m0 + wg * 64 + w * 16 + l / 4 + i % 4 / 2 * 8, c = n0 + i / 4 * 8 + l % 4 * 2 + i % 2; if (r < M && c < K) C[(size_t)r * K + c] = acc[i]; }
}
