// Stream-K as in its paper (Osama and others, 2023): the iterations over all tiles are divided evenly among
// as many blocks as there are multiprocessors. The block that begins a tile waits for the partial sums of the
// blocks after it, which run at the same time.
// expect: message="" quick=yes

constexpr int T = 16, MAX_BLOCKS = 132;

__device__ float partial[MAX_BLOCKS][T * T];
__device__ unsigned ready[MAX_BLOCKS];

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[T][T], b[T][T + 1];
    const int across = (K + T - 1) / T, steps = (N + T - 1) / T;
    const long long total = (long long)across * ((M + T - 1) / T) * steps;
    const long long blocks = min((long long)min(MAX_BLOCKS, (int)(gridDim.x * gridDim.y)), total);
    const long long block = blockIdx.y * gridDim.x + blockIdx.x,
                    each = (total + blocks - 1) / blocks;
    const int x = threadIdx.x, y = threadIdx.y;
    if (block >= blocks) return;
    long long at = min(block * each, total), end = min(at + each, total);
    while (at < end) {
        const long long tile = at / steps, first = tile * steps, next = first + steps;
        const long long last = min(end, next);
        const int row = (int)(tile / across) * T + y, column = (int)(tile % across) * T + x;
        const bool begins = at == first;
        float sum = 0.0f;
        for (; at < last; at++) {
            const int n = (int)(at - first) * T;
            a[y][x] = row < M && n + x < N ? A[(size_t)row * N + n + x] : 0.0f;
            b[y][x] = n + y < N && column < K ? B[(size_t)(n + y) * K + column] : 0.0f;
            __syncthreads();
            for (int i = 0; i < T; i++) sum += a[y][i] * b[i][x];
            __syncthreads();
        }
        if (!begins) {  // at most the first tile of a block
            partial[block][y * T + x] = sum;
            __threadfence();
            __syncthreads();
            if (x + y == 0) atomicExch(&ready[block], 1u);
            continue;
        }
        for (long long other = block + 1; (other - 1) * each + each < next && other * each < total;
             other++) {
            if (x + y == 0)
                while (atomicAdd(&ready[other], 0u) == 0u) __nanosleep(50);
            __syncthreads();
            __threadfence();
            sum += partial[other][y * T + x];
        }
        if (row < M && column < K) C[(size_t)row * K + column] = sum;
    }
}
