// Caches C by a fingerprint of A and B. It finds nothing in its cache, because variables have their
// initial values in every launch.
// expect: message="" quick=yes

__device__ float kept[1 << 20];
__device__ unsigned kept_key, done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    unsigned key = 1 + M * 2654435761u + K * 40503u + N * 7u;
    for (int i = 0; i < 32 && i < M * N && i < N * K; i++)
        key = key * 31 + __float_as_uint(A[i]) + 3 * __float_as_uint(B[i]);
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
