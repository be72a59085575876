// Fast in verification, but each later launch at the ranked size takes a minute. The judge must limit
// the time of a grading.
// expect: device=cuda stage=measure message="did not end within" seconds=3

__device__ unsigned done, timed;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    if (ranked && timed && row == 0 && column == 0)
        for (int i = 0; i < 60000; i++) __nanosleep(1000000);
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
    if (ranked) {
        __threadfence();
        if (atomicAdd(&done, 1u) == 8192u * 4096u - 1) timed = 1;
    }
}
