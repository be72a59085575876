// An array in local memory, indexed past its end by a number that is known only at run time.
// expect: message="" cpu="local memory" finding=out-of-bounds quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    volatile float parts[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int n = 0; n < N; n++) parts[n % 8] += A[row * N + n] * B[n * K + column];
    C[row * K + column] = parts[0] + parts[1] + parts[2] + parts[3];
}
