// The last column of each tile is written by the block to the right as well, with the same value.
// expect: message="" cpu="no release and acquire between the two blocks" finding=race quick=cpu device=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    for (int again = 0; again < 2; again++) {
        int column = blockIdx.x * 16 + threadIdx.x - again;
        if (row >= M || column >= K || column < 0) continue;
        float sum = 0.0f;
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
        if (!again || threadIdx.x == 0) C[row * K + column] = sum;
    }
}
