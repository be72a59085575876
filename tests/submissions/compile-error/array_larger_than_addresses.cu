// An array of 2^62 floats.
// expect: stage=compile message=""

__device__ float pool[1ULL << 62];

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = pool[M];
}
