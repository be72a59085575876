// One thread of each warp counts under a cuda::binary_semaphore, and all wait at a cuda::latch. Later
// blocks read the same shared memory in another order of lanes.
// expect: message="" quick=yes slow=yes

#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/atomic>
using Latch = cuda::latch<cuda::thread_scope_block>;
using Sem = cuda::binary_semaphore<cuda::thread_scope_block>;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ alignas(Latch) unsigned char lm[sizeof(Latch)];
    __shared__ alignas(Sem) unsigned char sm[sizeof(Sem)];
    __shared__ float c[16][16];
    __shared__ int order;
    Latch& done = *reinterpret_cast<Latch*>(lm);
    Sem& sem = *reinterpret_cast<Sem*>(sm);
    int t = threadIdx.y * 16 + threadIdx.x;
    if (t == 0) {
        new (lm) Latch(256);
        new (sm) Sem(1);
        order = 0;
    }
    __syncthreads();
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float s = 0;
    if (row < M && col < K)
        for (int n = 0; n < N; n++) s += A[row * (long)N + n] * B[n * (long)K + col];
    c[threadIdx.y][threadIdx.x] = s;
    if (t % 32 == 0) {
        sem.acquire();
        order++;
        sem.release();
    }
    done.arrive_and_wait();
    if (order != 8) __trap();
    int r2 = blockIdx.y * 16 + t / 16, c2 = blockIdx.x * 16 + (15 - t % 16);
    if (r2 < M && c2 < K) C[r2 * (long)K + c2] = c[t / 16][15 - t % 16];
}
