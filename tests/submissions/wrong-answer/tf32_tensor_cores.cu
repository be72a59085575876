// One TF32 product through the tensor cores: mma.sync in inline PTX, a 16x8 tile for each warp.
// solve: tile=16x64
// expect: stage=verify message="look like inputs of low precision" quick=yes

__device__ float at(const float* X, int rows, int columns, int r, int c) {
    return r < rows && c < columns ? X[(size_t)r * columns + c] : 0.0f;
}

__device__ unsigned tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int thread = threadIdx.y * 16 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    int group = lane / 4, quad = lane % 4;
    int row = blockIdx.y * 16 + group, column = blockIdx.x * 64 + warp * 8;
    float c[4] = {};
    for (int n = 0; n < N; n += 8) {
        unsigned a0 = tf32(at(A, M, N, row, n + quad)), a1 = tf32(at(A, M, N, row + 8, n + quad));
        unsigned a2 = tf32(at(A, M, N, row, n + quad + 4));
        unsigned a3 = tf32(at(A, M, N, row + 8, n + quad + 4));
        unsigned b0 = tf32(at(B, N, K, n + quad, column + group));
        unsigned b1 = tf32(at(B, N, K, n + quad + 4, column + group));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; i++) {
        int r = row + i / 2 * 8, k = column + quad * 2 + i % 2;
        if (r < M && k < K) C[(size_t)r * K + k] = c[i];
    }
}
