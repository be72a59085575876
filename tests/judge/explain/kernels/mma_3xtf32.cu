// solve: tile=64x64
__device__ unsigned rounded(float x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}
__device__ void multiply(float* d, const unsigned* a, const unsigned* b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[64][20], b[16][72];
    int thread = threadIdx.y * 16 + threadIdx.x, lane = thread % 32, warp = thread / 32;
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    int warp_row = warp / 2 * 16, warp_col = warp % 2 * 32, group = lane / 4, member = lane % 4;
    float sum[4][4] = {};
    for (int n = 0; n < N; n += 16) {
        for (int i = thread; i < 1024; i += 256) {
            int row = i / 16, inner = i % 16;
            a[row][inner] = top + row < M && n + inner < N ? A[(top + row) * N + n + inner] : 0.0f;
            inner = i / 64;
            int col = i % 64;
            b[inner][col] = n + inner < N && left + col < K ? B[(n + inner) * K + left + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k += 8) {
            unsigned high_a[4], low_a[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float x = a[warp_row + group + i % 2 * 8][k + member + i / 2 * 4];
                high_a[i] = rounded(x);
                low_a[i] = rounded(x - __uint_as_float(high_a[i]));
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                unsigned high_b[2], low_b[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float x = b[k + member + i * 4][warp_col + j * 8 + group];
                    high_b[i] = rounded(x);
                    low_b[i] = rounded(x - __uint_as_float(high_b[i]));
                }
                multiply(sum[j], low_a, high_b);
                multiply(sum[j], high_a, low_b);
                multiply(sum[j], high_a, high_b);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = top + warp_row + group + i / 2 * 8;
            int col = left + warp_col + j * 8 + member * 2 + i % 2;
            if (row < M && col < K) C[row * K + col] = sum[j][i];
        }
}
