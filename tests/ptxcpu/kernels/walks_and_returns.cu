extern "C" __global__ void matrix_multiplication_kernel(
    const volatile float* A, const float* B, float* C, int M, int N, int K) {
    const volatile float* a = A + threadIdx.x % 32 * 8;
    float sum = a[0];
    for (int i = 1; i < M; ++i)
        sum += a[256 * i];
    sum -= a[0];
    C[threadIdx.x] = sum;
}
