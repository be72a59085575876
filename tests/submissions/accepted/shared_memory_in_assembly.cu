// Declares two tiles of the same name in two blocks of assembly. They are different variables.
// expect: message="" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    unsigned a, b;
    asm volatile("{\n.shared .align 16 .b8 tile[1024];\nmov.u32 %0, tile;\n}" : "=r"(a));
    asm volatile("{\n.shared .align 16 .b8 tile[1024];\nmov.u32 %0, tile;\n}" : "=r"(b));
    float* tile_a = (float*)__cvta_shared_to_generic(a);
    float* tile_b = (float*)__cvta_shared_to_generic(b);
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    int place = threadIdx.y * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        int along = n + threadIdx.x, down = n + threadIdx.y;
        tile_a[place] = row < M && along < N ? A[(size_t)row * N + along] : 0.0f;
        tile_b[place] = down < N && column < K ? B[(size_t)down * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            sum += tile_a[threadIdx.y * 16 + i] * tile_b[i * 16 + threadIdx.x];
        }
        __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
