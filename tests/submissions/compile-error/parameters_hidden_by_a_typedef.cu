// Seven parameters in a macro, which the parser of the source cannot count.
// expect: stage=compile message="takes (PARAMETERS); it must take (const float* A"

#define PARAMETERS const float *A, const float *B, float *C, int M, int N, int K, float *answer

extern "C" __global__ void matrix_multiplication_kernel(PARAMETERS) { C[0] = answer[0]; }
