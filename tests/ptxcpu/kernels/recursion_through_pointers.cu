// Two functions that call each other through a table.
typedef float (*F)(float);
__device__ float even(float x), odd(float x);
__device__ F table[2] = {even, odd};
__device__ float even(float x) { return x > 0 ? table[1](x - 1) : 1; }
__device__ float odd(float x) { return x > 0 ? table[0](x - 1) : 0; }
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = table[M & 1](A[0]);
}
