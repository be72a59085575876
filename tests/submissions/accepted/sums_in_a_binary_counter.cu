// The compiler loads the whole local array, also elements that were never written, and selects those
// whose bit is set.
// expect: message="" quick=yes

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float levels[32];
    unsigned count = 0;
    for (int n = 0; n < N; n += 8) {
        float sum = 0.0f;
        for (int i = n; i < min(n + 8, N); i++) sum += A[row * N + i] * B[i * K + column];
        unsigned level = 0;
        for (unsigned left = count; left & 1; left >>= 1) sum += levels[level++];
        levels[level] = sum;
        count++;
    }
    float total = 0.0f;
    for (int level = 0; level < 32; level++)
        if (count >> level & 1) total += levels[level];
    C[row * K + column] = total;
}
