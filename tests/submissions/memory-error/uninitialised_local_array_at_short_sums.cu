// Multiplies elements of a local array that were never written by zero, but only if N is below 16:
// later, the array has the finite elements of an earlier step.
// expect: stage=sanitize message="uninitialised" finding=uninitialised quick=cpu
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    float part[16];
    for (int start = 0; start < N; start += 16) {
#pragma unroll 1
        for (int i = 0; i < 16; i++)
            if (start + i < N) part[(i + column) & 15] = A[row * N + start + i];
#pragma unroll 1
        for (int i = 0; i < 16; i++)
            sum += part[(i + column) & 15] * (start + i < N ? B[(start + i) * K + column] : 0.0f);
    }
    C[row * K + column] = sum;
}
