// Ends for small matrices and never for one with more than 300 rows.
// expect: stage=verify message="512×384×256" seconds=0.5 quick=yes slow=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    while (M > 300) __nanosleep(1000);  // ptxas would remove an endless loop without a body
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
