// A function that calls itself.
__device__ __noinline__ float half_of(float x, int n) { return n ? half_of(x, n - 1) * x + n : x; }
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = half_of(A[0], N);
}
