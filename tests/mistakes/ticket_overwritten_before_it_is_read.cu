// expect: race
// says: racecheck: line 9 (thread (1, 0, 0)) reads what line 8
// says: Write `__syncthreads();` between the two
__device__ unsigned tickets;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ unsigned ticket;
  for (unsigned tiles = gridDim.x * gridDim.y;;) {
    if (threadIdx.x + threadIdx.y == 0) ticket = atomicAdd(&tickets, 1);
    if (ticket >= tiles) return;
    int r = ticket / gridDim.x * 16 + threadIdx.y, c = ticket % gridDim.x * 16 + threadIdx.x;
    float s = 0;
    if (r < M && c < K) for (int n = 0; n < N; n++) s += A[r * N + n] * B[n * K + c];
    if (r < M && c < K) C[r * K + c] = s;
    __syncthreads();
  }
}
