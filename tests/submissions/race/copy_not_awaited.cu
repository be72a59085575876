// Uses cp.async without waiting for the copy, so it may read the tile before the data has arrived.
// expect: message="" cpu="has not delivered" finding=race,uninitialised

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float row_of_a[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    unsigned to = (unsigned)__cvta_generic_to_shared(&row_of_a[ty][tx]);
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        bool inside = row < M && n + tx < N;
        const float* from = inside ? A + row * N + n + tx : A;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                     "r"(inside ? 4 : 0)
                     : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        __syncthreads();
        for (int i = 0; i < 16 && n + i < N; i++)
            if (column < K) sum += row_of_a[ty][i] * B[(n + i) * K + column];
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
