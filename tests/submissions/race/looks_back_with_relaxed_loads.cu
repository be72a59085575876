// A variant of accepted/looks_back_with_atomic_ref.cu in which the reader does not acquire.
// expect: message="" cpu="no release and acquire between the two blocks" finding=race quick=cpu device=cpu
#include <cuda/atomic>

__device__ unsigned ticket, ready[1 << 20], tiles_before[1 << 20];

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ unsigned drawn, tile;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        unsigned blocks = gridDim.x * gridDim.y;
        drawn = atomicAdd(&ticket, 1u);
        tile = 0;
        if (drawn > 0) {
            cuda::atomic_ref<unsigned, cuda::thread_scope_device> before(ready[drawn - 1]);
            while (before.load(cuda::std::memory_order_relaxed) == 0) {}
            before.store(0, cuda::std::memory_order_relaxed);
            tile = tiles_before[drawn - 1];
        }
        if (drawn + 1 < blocks) {
            tiles_before[drawn] = tile + 1;
            cuda::atomic_ref<unsigned, cuda::thread_scope_device> mine(ready[drawn]);
            mine.store(1, cuda::std::memory_order_release);
        } else
            ticket = 0;
    }
    __syncthreads();
    int row = tile / gridDim.x * 16 + threadIdx.y, column = tile % gridDim.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
