// The sum is an int: right for whole numbers, which is what a first test often uses.
// expect: stage=verify message="512×384×256" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int sum = 0;
    for (int n = 0; n < N; n++) sum += (int)(A[row * N + n] * B[n * K + column]);
    C[row * K + column] = (float)sum;
}
