// Tries to compute only in every other launch. Its counter is always 0, because variables have their
// initial values in every launch.
// expect: message="" quick=yes

__device__ int launches;
__device__ unsigned done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool lazy = launches & 1;
    if (row < M && column < K) {
        float sum = 0.0f;
        if (!lazy)
            for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    __threadfence();
    unsigned threads = gridDim.x * gridDim.y * 256;
    if (atomicInc(&done, threads - 1) == threads - 1) {
        __threadfence();
        launches++;
    }
}
