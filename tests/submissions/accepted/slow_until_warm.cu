// Is slow in the first twelve launches at the ranked size, so that the warm-up takes long and the
// measurement is short. It gains nothing: the warm-up is not scored, and there is a minimum number
// of rounds.
// expect: device=cuda message=""

__device__ unsigned blocks_done;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool ranked = M == 8192 && N == 6144 && K == 4096;
    if (ranked && blocks_done < 12u * 131072u) __nanosleep(2000);
    if (row < M && column < K) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
    __syncthreads();
    if (ranked && threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(&blocks_done, 1u);
}
