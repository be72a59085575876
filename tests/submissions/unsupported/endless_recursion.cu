// Calls itself until the stack overflows, at which a GPU stops it. The CPU device has no stack for
// recursive functions, and reports that before it runs anything.
// expect: device=cpu stage=compile message="recursion: deeper calls itself"

__device__ __noinline__ float deeper(const float* A, float x, int depth) {
    volatile float here[64];
    here[depth & 63] = x;
    if (A[0] == 1234567.0f) return x;
    return deeper(A, here[depth & 63] + 1.0f, depth + 1) + here[(depth + 1) & 63];
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) C[row * K + column] = deeper(A, B[0], 0);
}
