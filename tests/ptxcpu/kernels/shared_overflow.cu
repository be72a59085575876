// The loop runs one element past the first of two shared arrays.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float first[64], second[64];
    int id = threadIdx.y * 16 + threadIdx.x;
    if (id < 64) second[id] = B[0];
    __syncthreads();
    if (id <= 64) first[id] = A[0];
    __syncthreads();
    if (id < 64) C[0] = first[id] + second[id];
}
