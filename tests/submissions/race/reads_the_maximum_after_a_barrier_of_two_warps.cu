// Threads combine the maximum of their sums in shared memory. One of them reads it after a barrier of the first
// and the last warp only, and gives it to the others.
// expect: message="" cpu="no barrier between them" finding=race quick=cpu device=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ int largest, found;
    int thread = threadIdx.y * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    bool inside = row < M && column < K;
    float sum = 0.0f;
    for (int n = 0; inside && n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (thread == 0) largest = 0;
    __syncthreads();
    atomicMax(&largest, __float_as_int(fabsf(sum)));
    if (thread < 32 || thread >= 224) asm volatile("bar.sync 1, 64;" ::: "memory");
    if (thread == 0) found = largest;
    __syncthreads();
    if (inside) C[(size_t)row * K + column] = found < 0 ? 0.0f : sum;
}
