// expect: memory-error
// says: at an address that is not a multiple of 16
// says: The index of a vector of 4 floats must be a multiple of 4.
#include <cuda_pipeline.h>
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float4 a[256];
  int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x, t = threadIdx.y * 16 + threadIdx.x;
  float s = 0;
  for (int n = 0; n < N && r < M && c < K; n++) {
    __pipeline_memcpy_async(&a[t], &A[r * N + n], 16, 12);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    s += a[t].x * B[n * K + c];
  }
  if (r < M && c < K) C[r * K + c] = s;
}
