// Keeps the last result and returns it again for the same shape. It never finds one, because variables
// have their initial values in every launch.
// expect: message="" quick=yes

__device__ float kept[1 << 20];
__device__ int kept_M, kept_N, kept_K;
__device__ unsigned done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool hit = kept_M == M && kept_N == N && kept_K == K && M * K <= 1 << 20;
    if (row < M && column < K) {
        size_t i = (size_t)row * K + column;
        float sum = 0.0f;
        if (hit) sum = kept[i % (1 << 20)];
        for (int n = 0; n < N && !hit; n++)
            sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[i] = sum;
        kept[i % (1 << 20)] = sum;
    }
    __threadfence();
    unsigned threads = gridDim.x * gridDim.y * 256;
    if (atomicInc(&done, threads - 1) == threads - 1) {
        __threadfence();
        kept_M = M, kept_N = N, kept_K = K;
    }
}
