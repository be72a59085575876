// Every thread adds to a counter in shared memory. One thread of the first block reads it without a barrier.
// Its own addition is the last one if threads run in the order of their numbers, from the last to the first.
// expect: message="" cpu="no barrier between them" finding=race quick=cpu device=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ int counted, found;
    int thread = threadIdx.y * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (thread == 0) counted = found = 0;
    __syncthreads();
    atomicAdd(&counted, 1);
    if (thread == 0 && blockIdx.x + blockIdx.y == 0) found = counted;
    __syncthreads();
    if (row >= M || column >= K) return;
    float sum = found > 256 ? 1.0f : 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
