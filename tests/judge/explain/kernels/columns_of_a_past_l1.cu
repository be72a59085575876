// solve: tile=16x64
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.x, left = blockIdx.x * 64 + threadIdx.y * 4;
    float sum[4] = {};
    for (int n = 0; n < N; n++) {
        float a = row < M ? __ldcg(&A[row * N + n]) : 0.0f;
#pragma unroll
        for (int j = 0; j < 4; j++) sum[j] += left + j < K ? a * B[n * K + left + j] : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (row < M && left + j < K) C[row * K + left + j] = sum[j];
}
