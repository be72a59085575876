// expect: memory-error
// says: Not every size is a multiple of the tile's
// solve: tile=128x128
#include <cuda_runtime.h>
#include <cstdio>
#include <cassert>
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__device__ __forceinline__ void sgemmVectorize(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const uint cRow = blockIdx.y;
  const uint cCol = blockIdx.x;
  const uint tid = threadIdx.y * blockDim.x + threadIdx.x;
  const int threadCol = tid % (BN / TN);
  const int threadRow = tid / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  const uint innerRowA = tid / (BK / 4);
  const uint innerColA = tid % (BK / 4);
  const uint innerRowB = tid / (BN / 4);
  const uint innerColB = tid % (BN / 4);
  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0};
  float regN[TN] = {0.0};
  const bool vecA = (K % 4 == 0), vecB = (N % 4 == 0);
  for (uint bkIdx = 0; bkIdx < K; bkIdx += BK) {
    uint ar = cRow * BM + innerRowA, ac = bkIdx + innerColA * 4;
    float4 tmp = make_float4(0.f, 0.f, 0.f, 0.f);
    if (ar < M) {
      if (vecA && ac + 3 < K) tmp = reinterpret_cast<const float4 *>(&A[ar * K + ac])[0];
      else {
        if (ac + 0 < K) tmp.x = A[ar * K + ac];
        if (ac + 1 < K) tmp.y = A[ar * K + ac + 1];
        if (ac + 2 < K) tmp.z = A[ar * K + ac + 2];
        if (ac + 2 < K) tmp.w = A[ar * K + ac + 3];
      }
    }
    As[(innerColA * 4 + 0) * BM + innerRowA] = tmp.x;
    As[(innerColA * 4 + 1) * BM + innerRowA] = tmp.y;
    As[(innerColA * 4 + 2) * BM + innerRowA] = tmp.z;
    As[(innerColA * 4 + 3) * BM + innerRowA] = tmp.w;
    uint br = bkIdx + innerRowB, bc = cCol * BN + innerColB * 4;
    float4 tb = make_float4(0.f, 0.f, 0.f, 0.f);
    if (br < K) {
      if (vecB && bc + 3 < N) tb = reinterpret_cast<const float4 *>(&B[br * N + bc])[0];
      else {
        if (bc + 0 < N) tb.x = B[br * N + bc];
        if (bc + 1 < N) tb.y = B[br * N + bc + 1];
        if (bc + 2 < N) tb.z = B[br * N + bc + 2];
        if (bc + 3 < N) tb.w = B[br * N + bc + 3];
      }
    }
    reinterpret_cast<float4 *>(&Bs[innerRowB * BN + innerColB * 4])[0] = tb;
    __syncthreads();
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[dotIdx * BM + threadRow * TM + i];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      for (uint m = 0; m < TM; ++m)
        for (uint n = 0; n < TN; ++n) threadResults[m * TN + n] += regM[m] * regN[n];
    }
    __syncthreads();
  }
  for (uint m = 0; m < TM; m += 1)
    for (uint n = 0; n < TN; n += 1) {
      uint r = cRow * BM + threadRow * TM + m, c = cCol * BN + threadCol * TN + n;
      if (r < M && c < N) C[r * N + c] = alpha * threadResults[m * TN + n];
    }
}
__global__ void __launch_bounds__(256) matrix_multiplication_kernel(const float *A, const float *B, float *C, int M, int N, int K) {
  sgemmVectorize<128, 128, 8, 8, 8>(M, K, N, 1.0f, A, B, 0.0f, C);
}
void runSgemm(int M, int N, int K, float *A, float *B, float *C) {
  dim3 gridDim(CEIL_DIV(K, 128), CEIL_DIV(M, 128)), block(16, 16);
  matrix_multiplication_kernel<<<gridDim, block>>>(A, B, C, M, N, K);
}
