// Copy this file, make it faster, and grade it: nox -s grade -- my_kernel.cu
//
// C[M×K] = A[M×N] · B[N×K], row-major float32. Every block has 16×16 threads, and threadIdx.x
// varies along a row of C. By default a block computes 16×16 elements of C. A launch line declares
// larger tiles. It begins with two slashes, a space and "solve:", followed for example by
// "tile=128x64" for 128 rows and 64 columns. "shared_memory=32768" adds so many bytes of dynamic
// shared memory.

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int column = blockIdx.x * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
