// expect: wrong-answer
// says: `__constant__` memory stays zero: `dims` (line 4)
#include <cuda_runtime.h>
__constant__ int dims[3];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
  if (r >= dims[0] || c >= dims[2]) return;
  float s = 0; for (int n = 0; n < dims[1]; n++) s += A[(size_t)r * dims[1] + n] * B[(size_t)n * dims[2] + c];
  C[(size_t)r * dims[2] + c] = s;
}
extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) {
  int d[3] = {M, N, K};
  cudaMemcpyToSymbol(dims, d, sizeof d);
  matrix_multiplication_kernel<<<dim3((K + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(A, B, C, M, N, K);
}
