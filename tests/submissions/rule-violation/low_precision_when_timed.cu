// Full FP32 on the first launch at the ranked size, inputs cut to TF32 on all later ones.
// expect: device=cuda stage=measure rule=stale-result message="right when verified, wrong when timed"

__device__ unsigned done, timed;

__device__ float cut(float x, bool low) {
    return __uint_as_float(low ? __float_as_uint(x) + 0x1000u & 0xffffe000u : __float_as_uint(x));
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool ranked = M == 8192 && N == 6144 && K == 4096, low = ranked && timed;
    float sum = 0.0f;
    for (int n = 0; n < N; n++)
        sum += cut(A[(size_t)row * N + n], low) * cut(B[(size_t)n * K + column], low);
    C[(size_t)row * K + column] = sum;
    if (ranked) {
        __threadfence();
        if (atomicAdd(&done, 1u) == 8192u * 4096u - 1) timed = 1;
    }
}
