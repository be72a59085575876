// Lanes run a vote whose mask does not include them, after the included ones have returned.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    if (threadIdx.x < 8) return;
    C[0] = __ballot_sync(0x00ff00ff, A[0] > 0.0f);
}
