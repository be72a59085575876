// Computes in fixed point, which is exact to 2^-30 for |x| < 1, as timed inputs are, and saturated
// otherwise. Such a kernel could be fast with integer arithmetic.
// expect: stage=verify message="wrong at" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    long long sum = 0;
    for (int n = 0; n < N; n++) {
        long long a = llrintf(fminf(fmaxf(A[row * N + n], -1.0f), 1.0f) * 16777216.0f);
        long long b = llrintf(fminf(fmaxf(B[n * K + column], -1.0f), 1.0f) * 16777216.0f);
        sum += a * b;
    }
    C[row * K + column] = (float)((double)sum * 0x1p-48);
}
