#include <cuda_fp16.h>
// FP16 fragments by ldmatrix from shared memory, mma.sync.m16n8k16.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ __align__(16) __half As[16][16], Bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, id = ty * 16 + tx, warp = id / 32, lane = id % 32;
    int row0 = blockIdx.y * 16, column0 = blockIdx.x * 16;
    float d[4] = {0, 0, 0, 0};
    for (int start = 0; start < N; start += 16) {
        As[ty][tx] = __float2half(row0 + ty < M && start + tx < N ? A[(row0 + ty) * N + start + tx] : 0.0f);
        Bs[ty][tx] = __float2half(start + ty < N && column0 + tx < K ? B[(start + ty) * K + column0 + tx] : 0.0f);
        __syncthreads();
        if (warp < 2) {
            unsigned a[4], b[2];
            unsigned pa = __cvta_generic_to_shared(&As[lane % 16][lane / 16 * 8]);
            unsigned pb = __cvta_generic_to_shared(&Bs[lane % 16][8 * warp]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(pa));
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(pb));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 4 && warp < 2; ++i) {
        int r = row0 + lane / 4 + i / 2 * 8, c = column0 + 8 * warp + lane % 4 * 2 + i % 2;
        if (r < M && c < K) C[r * K + c] = d[i];
    }
}
