// Half of every warp waits at one barrier, half at another.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float s[256];
    int id = threadIdx.y * 16 + threadIdx.x;
    s[id] = A[0];
    if (threadIdx.x & 1) {
        __syncthreads();
        s[id] += 1.0f;
    } else {
        __syncthreads();
        s[id] += 2.0f;
    }
    C[0] = s[id];
}
