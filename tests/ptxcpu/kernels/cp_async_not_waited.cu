// 16x16 tiles, fetched with cp.async, with a wait for one tile too few.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ __align__(16) float As[2][16][16], Bs[2][16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    auto fetch = [&](int start, int s) {
        unsigned a = __cvta_generic_to_shared(&As[s][ty][tx]), b = __cvta_generic_to_shared(&Bs[s][ty][tx]);
        bool in_a = row < M && start + tx < N, in_b = start + ty < N && column < K;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(a),
                     "l"(in_a ? A + row * N + start + tx : A), "r"(in_a ? 4 : 0) : "memory");
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(b),
                     "l"(in_b ? B + (start + ty) * K + column : B), "r"(in_b ? 4 : 0) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    fetch(0, 0);
    for (int start = 0, s = 0; start < N; start += 16, s ^= 1) {
        fetch(start + 16, s ^ 1);
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += As[s][ty][i] * Bs[s][i][tx];
        __syncthreads();
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    if (row < M && column < K) C[row * K + column] = sum;
}
