// One thread for each element of C, with neighbouring threads in neighbouring ROWS.
//
// A warp reads memory in sectors of 32 bytes. Here threadIdx.x selects the row, so at every step
// the warp's 32 lanes read A at 16 addresses that are N floats apart. That takes 16 sectors for 16
// floats, so 7/8 of what is read is not used. B is read at 2 addresses, and the stores of C are
// scattered like the reads of A.
//
// This is an early version of solutions/01_naive.cu. It is kept as it was when the profile next to
// this file, 01_naive.ncu-rep, was taken on an H100: the profile names lines of this file and
// instructions of 01_naive.cubin. So no line may be added or removed.
//
// In the judge, on an H100: 423.040 ms, 0.019 x cuBLAS; 32 registers, 0 B of shared memory,
// 8 blocks per multiprocessor.

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.x;
    int col = blockIdx.x * 16 + threadIdx.y;
    if (row >= M || col >= K) return;

    float sum = 0.0f;
    for (int i = 0; i < N; ++i) sum += A[(size_t)row * N + i] * B[(size_t)i * K + col];
    C[(size_t)row * K + col] = sum;
}
