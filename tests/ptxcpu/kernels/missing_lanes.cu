// A shuffle inside a branch that half of the lanes take reads one of the others.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    float x = A[0];
    if (threadIdx.x < 8) x = __shfl_sync(0xffffffff, x, 8);
    C[0] = x;
}
