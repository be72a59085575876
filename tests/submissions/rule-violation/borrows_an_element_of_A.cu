// Changes the last bit of an element of A and restores it before the judge compares A.
// expect: message="the kernel changed A" rule=inputs-changed quick=cpu

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    if (row == 0 && column == 0) {
        volatile unsigned* input = (volatile unsigned*)A;
        unsigned kept = *input;
        *input = kept ^ 1;
        *input = kept;
    }
    C[(size_t)row * K + column] = sum;
}
