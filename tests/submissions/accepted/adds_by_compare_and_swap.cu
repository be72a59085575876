// Adds doubles and finds a maximum by compare-and-swap, as the programming guide does. The loads
// that come first are plain: if such a value is out of date, the swap fails.
// expect: message=""

__device__ void add(double* to, double value) {
    unsigned long long* bits = (unsigned long long*)to;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        double sum = value + __longlong_as_double(assumed);
        old = atomicCAS(bits, assumed, __double_as_longlong(sum));
    } while (assumed != old);
}

__device__ void maximise(float* largest, float value) {
    float old = *largest;
    while (old < value) {
        float assumed = old;
        old = __int_as_float(
            atomicCAS((int*)largest, __float_as_int(assumed), __float_as_int(value)));
        if (old == assumed) break;
    }
}

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ double sums[16][16];
    __shared__ float largest;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    sums[threadIdx.y][threadIdx.x] = 0;
    if (threadIdx.x + threadIdx.y == 0) largest = 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
        int k = blockIdx.x * 16 + i;
        if (row >= M || k >= K) break;
        double part = 0;
        for (int n = threadIdx.x; n < N; n += 16) part += (double)A[row * N + n] * B[n * K + k];
        add(&sums[threadIdx.y][i], part);
        maximise(&largest, (float)fabs(part));
    }
    __syncthreads();
    if (row < M && column < K)
        C[row * K + column] = largest == 0 ? 0 : sums[threadIdx.y][threadIdx.x];
}
