// Tiles are loaded between waits at a cuda::barrier, and the first one after a cuda::latch.
// expect: message="" absent="globaltimer" quick=yes

#include <cuda/barrier>
#include <cuda/latch>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    using Latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ alignas(Barrier) char barrier_memory[sizeof(Barrier)];
    __shared__ alignas(Latch) char latch_memory[sizeof(Latch)];
    Barrier& barrier = *reinterpret_cast<Barrier*>(barrier_memory);
    Latch& loaded = *reinterpret_cast<Latch*>(latch_memory);
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    if (x == 0 && y == 0) {
        init(&barrier, 256);
        new (&loaded) Latch(256);
    }
    __syncthreads();
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        tile_a[y][x] = row < M && n + x < N ? A[(size_t)row * N + n + x] : 0.0f;
        tile_b[y][x] = n + y < N && column < K ? B[(size_t)(n + y) * K + column] : 0.0f;
        if (n == 0)
            loaded.arrive_and_wait();
        else
            barrier.arrive_and_wait();
        for (int i = 0; i < 16; i++) sum += tile_a[y][i] * tile_b[i][x];
        barrier.arrive_and_wait();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
