// Caches C by the addresses of A and B. It finds nothing in its cache, because variables have their
// initial values in every launch.
// expect: message="" quick=yes

__device__ float kept[1 << 20];
__device__ unsigned long long kept_key;
__device__ unsigned done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    unsigned long long key = (unsigned long long)A * 3 + (unsigned long long)B * 5;
    key += (unsigned long long)M * 1000003 + (unsigned long long)N * 10007 + K;
    bool hit = kept_key == key;
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
        kept_key = key;
    }
}
