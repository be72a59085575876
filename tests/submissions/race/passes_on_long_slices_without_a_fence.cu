// Stream-K with slices of 64 products. Blocks share a tile only where sums are longer and tiles are many, and
// a block then passes on its part of the sum with no fence.
// expect: message="no release and acquire between the two blocks" finding=race device=cpu quick=yes
// solve: tile=32x32

__device__ float ws[1 << 22];
__device__ unsigned flags[1 << 12];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int G = min(gridDim.x * gridDim.y, 64u), b = blockIdx.y * gridDim.x + blockIdx.x;
    if (b >= G) return;
    int tx = (K + 31) / 32, tiles = tx * ((M + 31) / 32), slices = (N + 63) / 64;
    long long total = (long long)tiles * slices, lo = total * b / G, hi = total * (b + 1) / G;
    int t = threadIdx.y * 16 + threadIdx.x;
    for (long long it = lo; it < hi;) {
        int tile = it / slices, s0 = it % slices;
        long long end = min(hi, (long long)(tile + 1) * slices);
        int s1 = s0 + (int)(end - it);
        float acc[4] = {};
        for (int q = 0; q < 4; q++) {
            int r = tile / tx * 32 + t / 32 + 8 * q, c = tile % tx * 32 + t % 32;
            if (r < M && c < K)
                for (int n = s0 * 64; n < min(N, s1 * 64); n++)
                    acc[q] += A[(size_t)r * N + n] * B[(size_t)n * K + c];
        }
        if (s0 > 0) {  // partial: not the owner
            for (int q = 0; q < 4; q++) ws[(size_t)b * 1024 + q * 256 + t] = acc[q];
            __syncthreads();
            if (t == 0) atomicExch(&flags[b], 1u);
        } else {
            // owner: add the followers that computed the rest of this tile
            long long done = end;
            int f = b;
            while (done < (long long)(tile + 1) * slices) {
                f++;
                if (t == 0) {
                    while (atomicAdd(&flags[f], 0u) == 0) __nanosleep(32);
                    __threadfence();
                }
                __syncthreads();
                for (int q = 0; q < 4; q++) acc[q] += __ldcg(&ws[(size_t)f * 1024 + q * 256 + t]);
                done = min(total * (f + 1) / G, (long long)(tile + 1) * slices);
                __syncthreads();
            }
            for (int q = 0; q < 4; q++) {
                int r = tile / tx * 32 + t / 32 + 8 * q, c = tile % tx * 32 + t % 32;
                if (r < M && c < K) C[(size_t)r * K + c] = acc[q];
            }
        }
        it = end;
    }
}
