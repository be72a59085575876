// Strassen's algorithm if every 64th element of the rows and columns in its sums, with a different
// offset in each, has the same scale. The other 63 are not checked.
// expect: stage=verify message="wrong at" quick=cpu slow=yes

// Seven half-length sums for the eight of a product: rows i and i + M/2, columns j and j + K/2 meet.
__device__ float strassen(const float* A, const float* B, int M, int N, int K, int row,
                          int column) {
    int height = M / 2, depth = N / 2, width = K / 2, i = row % height, j = column % width;
    float m[7] = {};
    for (int n = 0; n < depth; n++) {
        const float *a = A + (size_t)i * N + n, *b = B + (size_t)n * K + j;
        const float *c = a + (size_t)height * N, *d = b + (size_t)depth * K;
        float a11 = a[0], a12 = a[depth], a21 = c[0], a22 = c[depth];
        float b11 = b[0], b12 = b[width], b21 = d[0], b22 = d[width];
        m[0] += (a11 + a22) * (b11 + b22), m[1] += (a21 + a22) * b11, m[2] += a11 * (b12 - b22);
        m[3] += a22 * (b21 - b11), m[4] += (a11 + a12) * b22, m[5] += (a21 - a11) * (b11 + b12);
        m[6] += (a12 - a22) * (b21 + b22);
    }
    if (row < height) return column < width ? m[0] + m[3] - m[4] + m[6] : m[2] + m[4];
    return column < width ? m[1] + m[3] : m[0] - m[1] + m[2] + m[5];
}

__device__ bool even(float x) { return fabsf(x) <= 1.0f; }

// Returns whether all examined elements have the same scale.
__device__ bool looks_safe(const float* A, const float* B, int M, int N, int K, int row,
                           int column) {
    bool safe = true;
    for (int i = 0; i < 2; i++) {
        int m = row % (M / 2) + i * (M / 2), k = column % (K / 2) + i * (K / 2);
        for (int n = m * 37 % 64; n < N; n += 64) safe &= even(A[(size_t)m * N + n]);
        for (int n = k * 37 % 64; n < N; n += 64) safe &= even(B[(size_t)n * K + k]);
    }
    return safe;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    bool halves = M % 2 + N % 2 + K % 2 == 0 && M >= 256 && N >= 256 && K >= 256;
    float sum = 0.0f;
    if (halves && looks_safe(A, B, M, N, K, row, column))
        sum = strassen(A, B, M, N, K, row, column);
    else
        for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
