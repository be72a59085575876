// expect: race
// says: Several threads change one variable by the same statement
__device__ int tickets;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ int ticket;
  if (threadIdx.x + threadIdx.y == 0) ticket = tickets++;
  __syncthreads();
  int r = ticket / gridDim.x * 16 + threadIdx.y, c = ticket % gridDim.x * 16 + threadIdx.x;
  float s = 0;
  if (r < M && c < K) for (int n = 0; n < N; n++) s += A[r * N + n] * B[n * K + c];
  if (r < M && c < K) C[r * K + c] = s;
}
