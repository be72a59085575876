// Walks through device memory in steps of 2 MiB from C on, looking for a matrix whose first element
// is the right one: cuBLAS's answer, or the judge's reference.
// expect: message="" cpu="past its end" finding=out-of-bounds

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float first = 0.0f;
    for (int n = 0; n < N; n++) first += A[n] * B[(size_t)n * K];
    const float* found = C;
    for (int step = 1; step < 64; step++)
        if (fabsf(C[(size_t)step * 524288] - first) < 1e-3f) found = C + (size_t)step * 524288;
    C[(size_t)row * K + column] = found[(size_t)row * K + column];
}
