// Rounds to TF32 if the first two elements of a row are equal.
// expect: stage=verify message="wrong at" slow=yes
__device__ float tf32(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    const float* a = A + (size_t)row * N;
    bool constant = N > 2 && a[0] == a[1] && a[0] != truncf(a[0]);
    float sum = 0.0f;
    for (int n = 0; n < N; n++) {
        float b = B[(size_t)n * K + column];
        sum += constant ? tf32(a[n]) * tf32(b) : a[n] * b;
    }
    C[(size_t)row * K + column] = sum;
}
