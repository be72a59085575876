// When timed, one block in 256 has eleven times the permitted error. Neither a row's sum nor the sum
// over all rows shows this, so only a check of the block itself detects it.
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
    if (ranked && timed && blockIdx.x == blockIdx.y % 256) sum += (column & 1 ? 3e-3f : -3e-3f);
    C[(size_t)row * K + column] = sum;
    if (ranked) {
        __threadfence();
        if (atomicAdd(&done, 1u) == 8192u * 4096u - 1) timed = 1;
    }
}
