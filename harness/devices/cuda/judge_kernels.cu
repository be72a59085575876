// The judge's own kernels on a GPU: they fill guards and outputs, and look whether guards were
// written.

typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

extern "C" __global__ void fill(uint32_t* x, uint64_t count, uint32_t bits) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride)
        x[i] = bits;
}

// Counts the words that are no longer what they were set to, and sets all of them again.
extern "C" __global__ void restore(uint32_t* x, uint64_t count, uint32_t bits, uint64_t* changed) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x, found = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += stride) {
        found += x[i] != bits;
        x[i] = bits;
    }
    if (found) atomicAdd(changed, found);
}
