// A tile of no rows.
// solve: tile=0x16
// expect: stage=read message="a tile has 1 to 65536 rows, not 0"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = A[0] * B[0];
}
