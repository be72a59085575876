extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    float sum = 0.0f;
    if (threadIdx.x % 2)
        for (int i = 0; i < M; ++i) sum += A[i] * sqrtf(B[i]);
    else
        for (int i = 0; i < N; ++i) sum -= A[i] / B[i + 1];
    C[threadIdx.x] = sum;
}
