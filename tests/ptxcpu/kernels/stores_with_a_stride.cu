extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float s[32 * 33];
    int id = threadIdx.y * 16 + threadIdx.x;
    s[id * M % 1056] = A[0];
    __syncthreads();
    C[0] = s[id];
}
