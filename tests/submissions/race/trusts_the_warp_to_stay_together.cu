// A sum over the lanes of a warp in shared memory without __syncwarp, as was usual before Volta.
// solve: tile=8x1
// expect: message="" cpu="no barrier between them" finding=race quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float partial[8][32];
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    int row = blockIdx.y * 8 + warp, column = blockIdx.x;
    float sum = 0.0f;
    if (row < M)
        for (int n = lane; n < N; n += 32)
            sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    partial[warp][lane] = sum;
    __syncthreads();
    for (int step = 16; step > 0; step /= 2)
        if (lane < step) partial[warp][lane] += partial[warp][lane + step];
    if (lane == 0 && row < M) C[(size_t)row * K + column] = partial[warp][0];
}
