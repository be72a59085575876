// expect: race
// says: Several threads change one variable by the same statement
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ int progress;
  if (threadIdx.x == 0 && threadIdx.y == 0) progress = 0;
  __syncthreads();
  int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
  float s = 0;
  if (r < M && c < K) for (int n = 0; n < N; n++) s += A[(size_t)r * N + n] * B[(size_t)n * K + c];
  progress++;
  __syncthreads();
  if (progress > 256) __trap();
  if (r < M && c < K) C[(size_t)r * K + c] = s;
}
