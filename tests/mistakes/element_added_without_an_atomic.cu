// expect: race
// says: Several threads change one variable by the same statement
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float sums[16];
  int r = blockIdx.y * 16 + threadIdx.y, c0 = blockIdx.x * 16;
  for (int c = c0; c < min(c0 + 16, K) && blockIdx.y * 16 < M; c++) {
    if (threadIdx.x == 0) sums[threadIdx.y] = 0;
    __syncthreads();
    if (r < M) for (int n = threadIdx.x; n < N; n += 16) sums[threadIdx.y] += A[r * N + n] * B[n * K + c];
    __syncthreads();
    if (r < M && threadIdx.x == 0) C[r * K + c] = sums[threadIdx.y];
  }
}
