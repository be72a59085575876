// Threads add to sums in shared memory by compare-and-swap, and read them without a barrier.
// expect: message="no barrier between" finding=race line=25 quick=cpu

__device__ void add(float* to, float value) {
    int old = *(int*)to, assumed;
    do {
        assumed = old;
        old = atomicCAS((int*)to, assumed, __float_as_int(value + __int_as_float(assumed)));
    } while (assumed != old);
}

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    __shared__ float sums[16][16];
    sums[threadIdx.y][threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
        int k = blockIdx.x * 16 + i;
        if (row >= M || k >= K) break;
        float part = 0;
        for (int n = threadIdx.x; n < N; n += 16) part += A[row * N + n] * B[n * K + k];
        add(&sums[threadIdx.y][i], part);
    }
    if (row < M && column < K) C[row * K + column] = sums[threadIdx.y][threadIdx.x];
}
