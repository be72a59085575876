// When timed, an error of 1.5e-5 in every block. This is 1.5 times the limit, but no single row of
// Freivalds' check is off by six standard deviations.
// expect: device=cuda stage=measure rule=stale-result message="right when verified, wrong when timed"

__device__ unsigned done, timed;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (ranked && timed) {
        unsigned bits = (row * 4096u + column) * 2654435761u;
        sum += (bits >> 31 ? 1.0f : -1.0f) * 3.9e-4f;  // elements have a magnitude of about 26
    }
    C[(size_t)row * K + column] = sum;
    if (ranked) {
        __threadfence();
        if (atomicAdd(&done, 1u) == 8192u * 4096u - 1) timed = 1;
    }
}
