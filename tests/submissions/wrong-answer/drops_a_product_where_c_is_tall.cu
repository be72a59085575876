// Wrong if C is tall and narrow, a shape that a list of square sizes does not contain.
// expect: stage=verify message="wrong at" slow=yes
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int first = M >= 577 && K < 512 && N > 1 ? 1 : 0;
    float sum = 0.0f;
    for (int n = first; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum;
}
