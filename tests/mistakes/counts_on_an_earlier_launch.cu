// expect: wrong-answer
// says: a `__device__` variable has its initial value again
// says: Nothing is kept from an earlier launch in `arrived` (line 4)
__device__ unsigned arrived = 0;

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ unsigned launch;
    if (threadIdx.x == 0 && threadIdx.y == 0) launch = atomicAdd(&arrived, 1) / (gridDim.x * gridDim.y);
    __syncthreads();
    // Half of the blocks now, the others in the next launch.
    if ((blockIdx.x + blockIdx.y + launch) % 2 != 0) return;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + col];
    C[row * K + col] = sum;
}
