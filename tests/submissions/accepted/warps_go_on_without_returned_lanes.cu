// Threads outside C return. The others name all lanes in warp-wide instructions, which CUDA allows:
// only lanes of the mask that have not returned must take part. No shuffle reads a lane that has.
// expect: message="" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float shared[16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    if (row >= M || column >= K) return;
    bool whole_warp = __reduce_add_sync(0xffffffff, 1) == __popc(__ballot_sync(0xffffffff, 1));
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float a = tx == 0 ? A[row * N + n] : 0.0f;
        if (n % 2 == 0) {
            a = __shfl_sync(0xffffffff, a, 0, 16);
        } else {
            if (tx == 0) shared[ty] = a;
            __syncwarp();
            a = shared[ty];
            __syncwarp();
        }
        sum += a * B[n * K + column];
    }
    if (whole_warp) C[row * K + column] = sum;
}
