// expect: memory-error
// says: A vector of 4 floats extends beyond the end of its row
#include <cuda_runtime.h>
// solve: tile=128x128
#define BM 128
#define BN 128
#define BK 8
#define OFFSET(r, c, ld) ((size_t)(r) * (ld) + (c))
#define FETCH4(p) (reinterpret_cast<float4*>(&(p))[0])
__global__ __launch_bounds__(256) void matrix_multiplication_kernel(const float* __restrict__ A, const float* __restrict__ B,
                                                                    float* __restrict__ C, int M, int N, int K) {
  __shared__ __align__(16) float As[BK][BM + 4];
  __shared__ __align__(16) float Bs[BK][BN];
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const int a_r = tid >> 1, a_c = (tid & 1) << 2;
  const int b_r = tid >> 5, b_c = (tid & 31) << 2;
  const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  const bool va = (N & 3) == 0, vb = (K & 3) == 0;
  float acc[8][8] = {{0.f}};
  float fa[8], fb[8];
  for (int k0 = 0; k0 < N; k0 += BK) {
    float4 ra = make_float4(0.f, 0.f, 0.f, 0.f), rb = ra;
    const int gr = row0 + a_r, gc = k0 + a_c;
    if (gr < M) {
      if (va && gc + 3 < N) ra = *reinterpret_cast<const float4*>(A + OFFSET(gr, gc, N));
      else {
        if (gc < N) ra.x = A[OFFSET(gr, gc, N)];
        if (gc + 1 < N) ra.y = A[OFFSET(gr, gc + 1, N)];
        if (gc + 2 < N) ra.z = A[OFFSET(gr, gc + 2, N)];
        if (gc + 3 < N) ra.w = A[OFFSET(gr, gc + 3, N)];
      }
    }
    const int br = k0 + b_r, bc = col0 + b_c;
    if (br < N) {
      if (vb && bc + 3 < K) rb = *reinterpret_cast<const float4*>(B + OFFSET(br, bc, K));
      else {
        if (bc < K) rb.x = B[OFFSET(br, bc, K)];
        if (bc + 1 < K) rb.y = B[OFFSET(br, bc + 1, K)];
        if (bc + 2 < K) rb.z = B[OFFSET(br, bc + 2, K)];
        if (bc + 3 < K) rb.w = B[OFFSET(br, bc + 3, K)];
      }
    }
    As[a_c][a_r] = ra.x; As[a_c + 1][a_r] = ra.y; As[a_c + 2][a_r] = ra.z; As[a_c + 3][a_r] = ra.w;
    FETCH4(Bs[b_r][b_c]) = rb;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      FETCH4(fa[0]) = FETCH4(As[k][threadIdx.y * 8]);
      FETCH4(fa[4]) = FETCH4(As[k][threadIdx.y * 8 + 4]);
      FETCH4(fb[0]) = FETCH4(Bs[k][threadIdx.x * 4]);
      FETCH4(fb[4]) = FETCH4(Bs[k][64 + threadIdx.x * 4]);
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] += fa[i] * fb[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int r = row0 + threadIdx.y * 8 + i;
    if (r >= M) break;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int c = col0 + h * 64 + threadIdx.x * 4;
      if (c < K && (OFFSET(r, c, K) & 3) == 0)
        *reinterpret_cast<float4*>(C + OFFSET(r, c, K)) = make_float4(acc[i][h * 4], acc[i][h * 4 + 1], acc[i][h * 4 + 2], acc[i][h * 4 + 3]);
      else
        for (int j = 0; j < 4; ++j) if (c + j < K) C[OFFSET(r, c + j, K)] = acc[i][h * 4 + j];
    }
  }
}
