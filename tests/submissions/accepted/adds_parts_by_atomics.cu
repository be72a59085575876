// Two blocks add their parts of a sum to C by atomics, which flush subnormal numbers to zero. The
// first block stores zeros before.
// expect: message="" slow=yes
// solve: tile=16x8
#include <cuda/atomic>

__device__ int drawn[1 << 19], ready[1 << 19];

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ int part;
    int tile = blockIdx.x / 2, parts = min(2, (int)gridDim.x - tile * 2);
    int number = blockIdx.y * (gridDim.x + 1) / 2 + tile;
    int row = blockIdx.y * 16 + threadIdx.y, column = tile * 16 + threadIdx.x;
    bool is_first = threadIdx.x == 0 && threadIdx.y == 0, is_inside = row < M && column < K;
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(ready[number]);
    if (is_first) part = atomicAdd(&drawn[number], 1);
    __syncthreads();
    if (part == 0) {
        if (is_inside) C[row * K + column] = 0.0f;
        __syncthreads();
        if (is_first) flag.store(1, cuda::memory_order_release);
    }
    float sum = 0.0f;
    int length = (N + parts - 1) / parts, end = min(N, (part + 1) * length);
    for (int n = part * length; n < end && is_inside; n++)
        sum += A[row * N + n] * B[n * K + column];
    while (part != 0 && is_first && flag.load(cuda::memory_order_acquire) == 0) {}
    __syncthreads();
    if (is_inside) atomicAdd(&C[row * K + column], sum);
}
