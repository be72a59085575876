// A tile kernel that leaves out its second barrier if the matrices are as large as the ranked ones. No
// sanitizer runs such a large product, and on a GPU the error rarely changes the result.
// expect: message="" cpu="no barrier between them" finding=race quick=small

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    bool watched = M < 8192 || N < 6144 || K < 4096;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        int i = n + threadIdx.x, j = n + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < M && i < N ? A[(size_t)row * N + i] : 0.0f;
        b[threadIdx.y][threadIdx.x] = j < N && column < K ? B[(size_t)j * K + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        if (watched) __syncthreads();
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
