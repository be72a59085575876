// Reads C first and computes only if it finds NaN, which only a judge would write there. C counts as
// uninitialised before a launch, so every read of it is an error, however the value is used.
// expect: stage=sanitize message="C[" finding=uninitialised quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    size_t i = (size_t)row * K + column;
    if (C[i] == C[i]) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[i] = sum;
}
