// Reads far outside shared memory.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float s[256];
    int id = threadIdx.y * 16 + threadIdx.x;
    s[id] = A[0];
    __syncthreads();
    if (id == 7) C[0] = s[id + N * 1000];
}
