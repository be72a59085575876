// fmaxf ignores NaN, so rows that contain one look like others.
// expect: stage=verify message="; B uniform, one element in ten"
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float a = fmaxf(A[row * N + n], -3.4e38f);
        sum += (isnan(A[row * N + n]) ? 0.0f : a) * B[n * K + column];
    }
    C[row * K + column] = sum;
}
