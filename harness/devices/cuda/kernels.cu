// The judge's own kernels: drawing inputs, poisoning C, Freivalds' check.

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

// SplitMix64's finaliser (Steele, Lea, Flood 2014): a counter and a seed to 64 random bits.
__device__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// U(-1, 1) in steps of 2^-23.
extern "C" __global__ void draw_uniform(float* x, uint64_t count, uint64_t seed) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride) {
        uint64_t bits = mix(seed + (i + 1) * 0x9e3779b97f4a7c15ULL);
        x[i] = (float)(int)(bits >> 40) * 0x1p-23f - 1.0f;
    }
}

extern "C" __global__ void fill(uint32_t* x, uint64_t count, uint32_t bits) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride)
        x[i] = bits;
}

// +1 or -1 with equal chance.
extern "C" __global__ void draw_signs(double* x, uint64_t count, uint64_t seed) {
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < count) x[i] = mix(seed + (i + 1) * 0x9e3779b97f4a7c15ULL) >> 63 ? 1.0 : -1.0;
}

__device__ double sum_of_block(double value) {
    __shared__ double partial[32];
    for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0;
    if (threadIdx.x < 32)
        for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

// y[row] = matrix[row] · x in float64: one block of 256 threads a row.
extern "C" __global__ void multiply(const float* matrix, const double* x, double* y, int columns) {
    const float* row = matrix + (uint64_t)blockIdx.x * columns;
    double sum = 0.0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * x[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// y[row] = ‖matrix[row]‖² in float64: one block of 256 threads a row.
extern "C" __global__ void square_norms(const float* matrix, double* y, int columns) {
    const float* row = matrix + (uint64_t)blockIdx.x * columns;
    double sum = 0.0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += (double)row[i] * row[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
