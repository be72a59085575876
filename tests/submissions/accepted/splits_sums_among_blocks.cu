// Stream-K with a fence before and after the ticket: pairs of blocks compute halves of every sum, and
// the block that gets the second ticket adds them.
// expect: message="" quick=yes

constexpr int SPLIT = 64;  // tiles that are computed by pairs of blocks, each half of every sum

__device__ float partial[SPLIT][2][256];
__device__ unsigned arrived[SPLIT];

__device__ float product(const float* A, const float* B, int row, int column, int first, int last,
                         int N, int K) {
    float sum = 0.0f;
    for (int n = first; n < last; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    return sum;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ unsigned before;
    int block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    int thread = threadIdx.y * 16 + threadIdx.x, pair = block & ~1;
    bool split = (block | 1) < SPLIT && (block | 1) < blocks;
    for (int tile = split ? pair : block; tile <= (split ? pair + 1 : block); tile++) {
        int row = tile / gridDim.x * 16 + threadIdx.y, column = tile % gridDim.x * 16 + threadIdx.x;
        bool inside = row < M && column < K;
        int first = split && block & 1 ? N / 2 : 0, last = split && !(block & 1) ? N / 2 : N;
        float sum = inside ? product(A, B, row, column, first, last, N, K) : 0.0f;
        if (!split) {
            if (inside) C[(size_t)row * K + column] = sum;
            continue;
        }
        partial[tile][block & 1][thread] = sum;
        __syncthreads();
        if (thread == 0) {
            __threadfence();
            before = atomicAdd(&arrived[tile], 1u);
            __threadfence();
        }
        __syncthreads();
        if (before == 1) {  // the other half is complete
            sum = partial[tile][0][thread] + partial[tile][1][thread];
            if (inside) C[(size_t)row * K + column] = sum;
            if (thread == 0) arrived[tile] = 0;
        }
        __syncthreads();
    }
}
