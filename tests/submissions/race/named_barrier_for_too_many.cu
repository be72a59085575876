// A named barrier expects 256 threads, and only half of the block arrives. A GPU would wait for ever;
// the CPU device detects that no other thread can arrive.
// expect: device=cpu message="" cpu="barrier 1 has 128 of 256 threads" finding=deadlock,divergent-barrier seconds=2 quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (threadIdx.y < 8) asm volatile("bar.sync 1, 256;" ::: "memory");
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
