// Each thread computes two elements but clears its sum only before the first.
// solve: tile=32x16
// expect: stage=verify message="wrong at" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int half = 0; half < 2; half++) {
        int row = blockIdx.y * 32 + half * 16 + threadIdx.y;
        if (row >= M || column >= K) continue;
        for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
        C[row * K + column] = sum;
    }
}
