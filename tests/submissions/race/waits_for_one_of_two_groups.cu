// Waits for only one of two groups of products, and then reads the sums of both.
// solve: tile=64x16
// expect: message="before wgmma.wait_group has waited" finding=race device=cpu quick=yes

__device__ int place(int line, int n) { return line / 8 * 64 + n / 4 * 32 + line % 8 * 4 + n % 4; }

// The high parts, or the low ones, of 64 rows of A; after them those of 16 columns of B.
__device__ unsigned long long descriptor(const float* tile) {
    unsigned long long address = (unsigned)__cvta_generic_to_shared(tile);
    return address >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

__device__ void multiply(float (&d)[8], const float* a, const float* b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7])
                 : "l"(descriptor(a)), "l"(descriptor(b)));
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ __align__(128) float high[80 * 8], low[80 * 8];
    int id = threadIdx.y * 16 + threadIdx.x, lane = id % 32, warp = id / 32;
    int row0 = blockIdx.y * 64, column0 = blockIdx.x * 16;
    float sum[8] = {};
    for (int n0 = 0; n0 < N; n0 += 8) {
        for (int i = id; i < 80 * 8; i += 256) {
            int line = i / 8, n = n0 + i % 8, row = row0 + line, column = column0 + line - 64;
            float x = 0.0f;
            if (line < 64 && row < M && n < N) x = A[(size_t)row * N + n];
            if (line >= 64 && column < K && n < N) x = B[(size_t)n * K + column];
            float part = __uint_as_float(__float_as_uint(x) & 0xffffe000);
            high[place(line, i % 8)] = part;
            low[place(line, i % 8)] = x - part;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (warp < 4) {
            float small[8] = {}, large[8] = {};
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            multiply(small, low, high + 64 * 8);
            multiply(small, high, low + 64 * 8);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            multiply(large, high, high + 64 * 8);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            for (int i = 0; i < 8; i++) {
                asm volatile("" : "+f"(small[i]), "+f"(large[i])::"memory");
                sum[i] += small[i] + large[i];
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        int row = row0 + 16 * warp + lane / 4 + i / 2 % 2 * 8;
        int column = column0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (warp < 4 && row < M && column < K) C[(size_t)row * K + column] = sum[i];
    }
}
