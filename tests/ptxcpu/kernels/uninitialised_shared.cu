// Only half of the shared array is ever written.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float s[256];
    int id = threadIdx.y * 16 + threadIdx.x;
    if (id < 128) s[id] = A[0];
    __syncthreads();
    C[0] = s[255 - id];
}
