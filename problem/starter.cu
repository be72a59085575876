// Copy this file, make it faster, and grade it: nox -s grade -- my_kernel.cu
//
// C[M×K] = A[M×N] · B[N×K], row-major float32. Every block has 16×16 threads; threadIdx.x runs
// along a row of C. By default one block computes 16×16 elements of C. To compute more a block,
// say how many rows and columns (and bytes of dynamic shared memory, if any) in a line like
//   solve: tile=128x64 shared_memory=32768
// with its slashes in front.

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int column = blockIdx.x * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
