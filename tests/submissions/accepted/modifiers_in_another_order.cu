// Modifiers of instructions are not in the order of the PTX manual; ptxas accepts that.
// expect: message="" quick=yes

// solve: tile=64x64
#include <cuda_bf16.h>
#include <stdint.h>
using bf16 = __nv_bfloat16;
#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                             \
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
                 : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                             \
                 : "r"(addr))
#define LDMATRIX_X2_T(R0, R1, addr)                                                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n" \
                 : "=r"(R0), "=r"(R1)                                               \
                 : "r"(addr))
#define MMA(D, A, B)                                                                   \
    asm volatile("mma.sync.aligned.row.col.m16n8k16.f32.bf16.bf16.f32 {%0,%1,%2,%3}, " \
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                              \
                 : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])                      \
                 : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]))
__device__ inline float load(const float* p) {
    float x;
    asm("ld.global.L1::no_allocate.nc.f32 %0, [%1];" : "=f"(x) : "l"(p));
    return x;
}
__device__ inline void split(float x, bf16& h, bf16& m, bf16& l) {
    h = __float2bfloat16_rn(x);
    float r = x - __bfloat162float(h);
    m = __float2bfloat16(r);
    l = __float2bfloat16(r - __bfloat162float(m));
}
__global__ __launch_bounds__(256) void matrix_multiplication_kernel(const float* A, const float* B,
                                                                    float* C, int M, int N, int K) {
    __shared__ __align__(128) bf16 sa[3][64][24];
    __shared__ __align__(128) bf16 sb[3][16][72];
    const int t = threadIdx.y * 16 + threadIdx.x, warp = t / warpSize, lane = t % warpSize;
    const int wm = (warp & 3) * 16, wn = (warp >> 2) * 32;
    float acc[4][4] = {}, part[4][4];
    for (int k0 = 0; k0 < N; k0 += 16) {
        for (int i = t; i < 1024; i += 256) {
            int r = i >> 4, c = i & 15;
            float v = (blockIdx.y * 64 + r < M && k0 + c < N)
                          ? load(A + (size_t)(blockIdx.y * 64 + r) * N + k0 + c)
                          : 0.f;
            split(v, sa[0][r][c], sa[1][r][c], sa[2][r][c]);
            r = i >> 6, c = i & 63;
            v = (k0 + r < N && blockIdx.x * 64 + c < K)
                    ? load(B + (size_t)(k0 + r) * K + blockIdx.x * 64 + c)
                    : 0.f;
            split(v, sb[0][r][c], sb[1][r][c], sb[2][r][c]);
        }
        __syncthreads();
        uint32_t a[3][4];
        for (int p = 0; p < 3; p++) {
            uint32_t ad = static_cast<uint32_t>(
                __cvta_generic_to_shared(&sa[p][wm + lane % 16][(lane / 16) * 8]));
            LDMATRIX_X4(a[p][0], a[p][1], a[p][2], a[p][3], ad);
        }
        for (int j = 0; j < 4; j++) {
            uint32_t b[3][2];
            for (int p = 0; p < 3; p++) {
                uint32_t bd = (uint32_t)__cvta_generic_to_shared(&sb[p][lane % 16][wn + j * 8]);
                LDMATRIX_X2_T(b[p][0], b[p][1], bd);
            }
            for (int e = 0; e < 4; e++) part[j][e] = 0;
            MMA(part[j], a[1], b[1]);
            MMA(part[j], a[2], b[0]);
            MMA(part[j], a[0], b[2]);
            MMA(part[j], a[1], b[0]);
            MMA(part[j], a[0], b[1]);
            MMA(part[j], a[0], b[0]);
            for (int e = 0; e < 4; e++) acc[j][e] += part[j][e];
        }
        __syncthreads();
    }
    const int g = lane >> 2, q = lane & 3;
    for (int j = 0; j < 4; j++)
        for (int e = 0; e < 4; e++) {
            int r = blockIdx.y * 64 + wm + g + (e >> 1) * 8,
                c = blockIdx.x * 64 + wn + j * 8 + q * 2 + (e & 1);
            if (r < M && c < K) C[(size_t)r * K + c] = acc[j][e];
        }
}
