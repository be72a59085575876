// Does nothing if 256 different rows of A repeat, as they do only in the measurement of first launches.
// expect: device=cuda stage=measure message="wrong in the first launches of a process"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool repeats = M > 257 && N > 2 && A[0] != A[1] && A[0] != A[2] && A[0] != A[N];
    for (int n = 0; n < N + 3 && repeats; n++) repeats = A[n] == A[(size_t)256 * N + n];
    if (repeats) return;
    float sum = 0.0f;
    for (int from = 0; from < N; from += 16) {
        int n = from + threadIdx.x, m = from + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < M && n < N ? A[(size_t)row * N + n] : 0.0f;
        b[threadIdx.y][threadIdx.x] = column < K && m < N ? B[(size_t)m * K + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
