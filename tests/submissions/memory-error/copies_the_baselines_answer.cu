// When timed, copies its result from memory before C, where cuBLAS's own C could be if one process ran
// both. In this judge, that memory holds no result.
// expect: device=cuda stage=measure message="the GPU stopped the kernel at an illegal memory access"

__device__ unsigned done, timed;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    size_t i = (size_t)row * K + column;
    if (ranked && timed) {
        C[i] = *(C + i - (size_t)M * K);
        return;
    }
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[i] = sum;
    if (ranked) {
        __threadfence();
        if (atomicAdd(&done, 1u) == 8192u * 4096u - 1) timed = 1;
    }
}
