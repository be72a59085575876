// Uses absolute values: correct on U(0, 1) only.
// expect: stage=verify message="512×384×256 uniform" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += fabsf(A[row * N + n]) * fabsf(B[n * K + column]);
    C[row * K + column] = sum;
}
