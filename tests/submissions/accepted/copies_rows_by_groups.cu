// Groups of eight threads copy rows. Where a row ends early, lanes of memcpy_async repeat the last copy.
// expect: message="" quick=yes slow=yes

// solve: tile=32x32
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ alignas(16) float sa[32][32];
    __shared__ alignas(16) float sb[32][32];
    auto block = cg::this_thread_block();
    auto row = cg::tiled_partition<8>(block);  // 32 groups of 8 threads
    float acc[2][2] = {};
    for (int k0 = 0; k0 < N; k0 += 32) {
        int r = row.meta_group_rank();
        int ca = max(0, min(32, N - k0)), cb = max(0, min(32, K - (int)blockIdx.x * 32));
        int gr = blockIdx.y * 32 + r;
        if (gr < M) cg::memcpy_async(row, sa[r], A + (size_t)gr * N + k0, sizeof(float) * ca);
        for (int c = row.thread_rank() + (gr < M ? ca : 0); c < 32; c += row.size()) sa[r][c] = 0;
        if (k0 + r < N)
            cg::memcpy_async(row, sb[r], B + (size_t)(k0 + r) * K + blockIdx.x * 32,
                             sizeof(float) * cb);
        for (int c = row.thread_rank() + (k0 + r < N ? cb : 0); c < 32; c += row.size())
            sb[r][c] = 0;
        cg::wait(row);
        block.sync();
        for (int kk = 0; kk < 32; kk++)
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++)
                    acc[i][j] += sa[threadIdx.y + 16 * i][kk] * sb[kk][threadIdx.x + 16 * j];
        block.sync();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            int r = blockIdx.y * 32 + threadIdx.y + 16 * i,
                c = blockIdx.x * 32 + threadIdx.x + 16 * j;
            if (r < M && c < K) C[(size_t)r * K + c] = acc[i][j];
        }
}
