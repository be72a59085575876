// Stream-K: the iterations over all tiles are divided evenly among fewer blocks than there are tiles. A
// block begins with its last tile. If it ends within that, it hands on its partial sums to the next
// block, with a fence and a flag.
// expect: message="" quick=yes
// solve: tile=32x32
constexpr int T = 32, BK = 16, MAXB = 8192;
__device__ float partial[MAXB][T * T];
__device__ int flag[MAXB];
__device__ int ticket_counter;
__global__ void __launch_bounds__(256)
    matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[T][BK + 1], b[BK][T];
    __shared__ int sh_ticket;
    int tid = threadIdx.y * 16 + threadIdx.x;
    int tiles_n = (K + T - 1) / T, tiles_m = (M + T - 1) / T, tiles = tiles_m * tiles_n;
    int per_tile = (N + BK - 1) / BK;
    int blocks = gridDim.x * gridDim.y;
    blocks = blocks * 3 / 4 + 1;
    if (blocks > 132) blocks = 132;
    if (tid == 0) sh_ticket = atomicAdd(&ticket_counter, 1);
    __syncthreads();
    int me = sh_ticket;
    if (me >= blocks) return;
    long long total = (long long)tiles * per_tile;
    long long lo = total * me / blocks, hi = total * (me + 1) / blocks;
    for (long long it = hi; it > lo;) {
        int tile = (int)((it - 1) / per_tile), k_end = (int)((it - 1) % per_tile) + 1;
        int k_begin = (int)max(0ll, k_end - (it - lo));
        int m0 = tile / tiles_n * T, n0 = tile % tiles_n * T;
        float acc[2][2] = {};
        for (int kt = k_begin; kt < k_end; kt++) {
            for (int i = tid; i < T * BK; i += 256) {
                int r = i / BK, c = i % BK;
                a[r][c] =
                    m0 + r < M && kt * BK + c < N ? A[(size_t)(m0 + r) * N + kt * BK + c] : 0.f;
            }
            for (int i = tid; i < T * BK; i += 256) {
                int r = i / T, c = i % T;
                b[r][c] =
                    kt * BK + r < N && n0 + c < K ? B[(size_t)(kt * BK + r) * K + n0 + c] : 0.f;
            }
            __syncthreads();
            for (int k = 0; k < BK; k++)
                for (int i = 0; i < 2; i++)
                    for (int j = 0; j < 2; j++)
                        acc[i][j] += a[threadIdx.y + 16 * i][k] * b[k][threadIdx.x + 16 * j];
            __syncthreads();
        }
        if (k_begin > 0) {  // the block before, which runs already, begins with this tile
            if (tid == 0)
                while (atomicAdd(&flag[me - 1], 0) == 0) __nanosleep(100);
            __syncthreads();
            __threadfence();
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++)
                    acc[i][j] +=
                        __ldcg(&partial[me - 1][(threadIdx.y + 16 * i) * T + threadIdx.x + 16 * j]);
        }
        if (k_end < per_tile) {
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++)
                    partial[me][(threadIdx.y + 16 * i) * T + threadIdx.x + 16 * j] = acc[i][j];
            __threadfence();
            __syncthreads();
            if (tid == 0) atomicExch(&flag[me], 1);
        } else {
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++) {
                    int r = m0 + threadIdx.y + 16 * i, c = n0 + threadIdx.x + 16 * j;
                    if (r < M && c < K) C[(size_t)r * K + c] = acc[i][j];
                }
        }
        it -= k_end - k_begin;
    }
}
