// Lanes exchange values through shared memory without __syncwarp: a race that a GPU may hide.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float s[256];
    int id = threadIdx.y * 16 + threadIdx.x;
    s[id] = A[0] + id;
    float x = ((volatile float*)s)[id ^ 1];
    if (x == -12345.0f) C[0] = x;
}
