// expect: compile-error
// says: compile-error  in line 6
// says: `scaled` is called, but the file does not define it
__device__ float scaled(float x);
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = scaled(A[0]);
}
