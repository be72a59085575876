// expect: compile-error
// says: compile-error  in line 5
// says: ptxas: Not a name of any known instruction: 'fmaa'
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    asm("fmaa.rn.f32 %0, %0, %0, %0;" : "+f"(C[0]));
}
