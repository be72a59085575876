// A named barrier for 256 threads, which half of them reach.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.y < 8) asm volatile("bar.sync 1, 256;" ::: "memory");
    C[0] = A[0];
}
