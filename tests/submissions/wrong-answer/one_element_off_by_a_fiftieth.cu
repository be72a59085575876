// One element in 131072 is off by 0.02, which is 0.3 % of the elements' typical magnitude there.
// expect: stage=verify message="512×384×256" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[row * N + n] * B[n * K + column];
    if (row == 101 && column == 77) sum += 0.02f;
    C[row * K + column] = sum;
}
