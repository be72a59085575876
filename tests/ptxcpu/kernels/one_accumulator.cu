// Three TF32 products of high and low parts. All sums are in the accumulators of the tensor cores, which
// truncate them; with PROMOTES, only the sums of 8 products along N are.

__device__ unsigned high_part(float x) { return __float_as_uint(x) & 0xffffe000; }

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int id = threadIdx.y * 16 + threadIdx.x, lane = id % 32, g = lane / 4, q = lane % 4;
    if (id >= 64) return;
    int row = blockIdx.y * 16 + g, column0 = blockIdx.x * 16 + id / 32 * 8;
    float d[4] = {};
    for (int n0 = 0; n0 < N; n0 += 8) {
        unsigned a_high[4], a_low[4], b_high[2], b_low[2];
        for (int i = 0; i < 4; i++) {
            int m = row + i % 2 * 8, n = n0 + q + i / 2 * 4;
            float x = m < M && n < N ? A[(size_t)m * N + n] : 0.0f;
            a_high[i] = high_part(x);
            a_low[i] = __float_as_uint(x - __uint_as_float(a_high[i]));
        }
        for (int i = 0; i < 2; i++) {
            int n = n0 + q + i * 4, column = column0 + g;
            float x = n < N && column < K ? B[(size_t)n * K + column] : 0.0f;
            b_high[i] = high_part(x);
            b_low[i] = __float_as_uint(x - __uint_as_float(b_high[i]));
        }
        float part[4] = {};
        float(&sum)[4] = PROMOTES ? part : d;
        multiply(sum, a_low, b_high);
        multiply(sum, a_high, b_low);
        multiply(sum, a_high, b_high);
        for (int i = 0; i < 4; i++) d[i] += part[i];
    }
    for (int i = 0; i < 4; i++) {
        int m = row + i / 2 * 8, column = column0 + 2 * q + i % 2;
        if (m < M && column < K) C[(size_t)m * K + column] = d[i];
    }
}
