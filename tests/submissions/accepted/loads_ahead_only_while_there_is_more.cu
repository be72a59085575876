// The variables for the next elements keep no value, or an old one, where there is no next element.
// expect: message="" quick=yes

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f, next_a, next_b;
    bool is_loaded = false;
    for (int n = -1; n < N; n++) {
        float a = next_a, b = next_b;
        bool is_ready = is_loaded;
        is_loaded = n + 1 < N;
        if (is_loaded) {
            next_a = A[row * N + n + 1];
            next_b = B[(n + 1) * K + column];
        }
        float product = a * b;
        sum += is_ready ? product : 0.0f;
    }
    C[row * K + column] = sum;
}
