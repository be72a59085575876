// expect: race
// says: Let the block store it whose own atomic has returned the last number
__device__ unsigned finished;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row < M && column < K) {
    float sum = 0;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
  }
  atomicAdd(&finished, 1u);
  __syncthreads();
  bool is_last = blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1;
  if (threadIdx.x + threadIdx.y == 0 && is_last) finished = 0;
}
