// Two warps arrive at a named barrier for 192 threads, at which the others wait for 256.
// expect: device=cpu message="" cpu="name the same number" finding=deadlock quick=yes

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float row_of_a[16][16];
    int thread = threadIdx.y * 16 + threadIdx.x, column = blockIdx.x * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        if (thread < 64) {
            for (int i = threadIdx.y; i < 16; i += 4) {
                int r = blockIdx.y * 16 + i, c = n + threadIdx.x;
                row_of_a[i][threadIdx.x] = r < M && c < N ? A[(size_t)r * N + c] : 0.0f;
            }
            __syncwarp();
            asm volatile("bar.arrive 1, 192;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 256;" ::: "memory");
        }
        __syncthreads();
        for (int i = 0; i < 16 && n + i < N; ++i)
            if (column < K) sum += row_of_a[threadIdx.y][i] * B[(size_t)(n + i) * K + column];
        __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
