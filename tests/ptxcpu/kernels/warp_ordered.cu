// Lanes exchange values through shared memory, ordered by __syncwarp: no race.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float s[256];
    int id = threadIdx.y * 16 + threadIdx.x;
    s[id] = A[0] + id;
    __syncwarp();
    float x = s[id ^ 1];
    __syncwarp();
    s[id] = x;
    if (x == -12345.0f) C[0] = x;
}
