// Five slices of 8-bit integers for each float, multiplied by tensor cores; their sums are doubles.
// expect: message="" quick=yes

// solve: tile=32x32
#include <math.h>
constexpr int S = 5;  // slices
__device__ __forceinline__ void imma(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};\n"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ float fa[32][33], fb[32][33];
    __shared__ __align__(16) int8_t sa[S][32][32], sb[S][32][32];  // sb[column][k]
    __shared__ int ea[32], eb[32];
    int t = threadIdx.x + threadIdx.y * 16, w = t / 32, l = t % 32, g = l >> 2, q = l & 3;
    int wm = (w & 1) * 16, wn = (w >> 1) * 8;
    double acc[4] = {};
    for (int k0 = 0; k0 < N; k0 += 32) {
        for (int i = t; i < 1024; i += 256) {
            int r = i / 32, c = i % 32;
            fa[r][c] = blockIdx.y * 32 + r < M && k0 + c < N
                           ? A[(size_t)(blockIdx.y * 32 + r) * N + k0 + c]
                           : 0.f;
            fb[c][r] = blockIdx.x * 32 + c < K && k0 + r < N
                           ? B[(size_t)(k0 + r) * K + blockIdx.x * 32 + c]
                           : 0.f;
        }
        __syncthreads();
        if (t < 64) {
            const float* row = t < 32 ? fa[t] : fb[t - 32];
            float m = 0;
            for (int i = 0; i < 32; i++) m = fmaxf(m, fabsf(row[i]));
            int e = m > 0 && isfinite(m) ? ilogbf(m) + 1 : 0;
            (t < 32 ? ea[t] : eb[t - 32]) = e;
        }
        __syncthreads();
        for (int i = t; i < 2048; i += 256) {
            int which = i / 1024, r = i / 32 % 32, c = i % 32;
            double v = scalbn((double)(which ? fb : fa)[r][c], 6 - (which ? eb : ea)[r]);
            for (int s = 0; s < S; s++) {
                double z = rint(v);
                (which ? sb : sa)[s][r][c] = (int8_t)z;
                v = (v - z) * 128;
            }
        }
        __syncthreads();
        double sum[4] = {};
        for (int level = S - 1; level >= 0; level--) {
            int d[4] = {};
            for (int i = 0; i <= level; i++) {
                unsigned a[4], b[2];
                a[0] = *(unsigned*)&sa[i][wm + g][q * 4];
                a[1] = *(unsigned*)&sa[i][wm + g + 8][q * 4];
                a[2] = *(unsigned*)&sa[i][wm + g][q * 4 + 16];
                a[3] = *(unsigned*)&sa[i][wm + g + 8][q * 4 + 16];
                b[0] = *(unsigned*)&sb[level - i][wn + g][q * 4];
                b[1] = *(unsigned*)&sb[level - i][wn + g][q * 4 + 16];
                imma(d, a, b);
            }
            for (int e = 0; e < 4; e++) sum[e] += scalbn((double)d[e], -7 * level - 12);
        }
        for (int e = 0; e < 4; e++)
            acc[e] += scalbn(sum[e], ea[wm + g + (e >> 1) * 8] + eb[wn + q * 2 + (e & 1)]);
        // special values
        for (int e = 0; e < 4; e++) {
            float x = 0;
            for (int i = 0; i < 32; i++)
                x += fa[wm + g + (e >> 1) * 8][i] * 0.f + fb[wn + q * 2 + (e & 1)][i] * 0.f;
            acc[e] += x;
        }
        __syncthreads();
    }
    for (int e = 0; e < 4; e++) {
        int r = blockIdx.y * 32 + wm + g + (e >> 1) * 8, c = blockIdx.x * 32 + wn + q * 2 + (e & 1);
        if (r < M && c < K) C[(size_t)r * K + c] = (float)acc[e];
    }
}
