// Reads four words of a tile at once, where N ends within them. Words that were never written are
// read in vain.
// expect: message="" quick=yes

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    __shared__ __align__(16) float a[16][20], b[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 16) {
        int depth = min(16, N - n);
        if (threadIdx.x < depth)
            a[threadIdx.y][threadIdx.x] = row < M ? A[row * N + n + threadIdx.x] : 0.0f;
        if (threadIdx.y < depth)
            b[threadIdx.y][threadIdx.x] = column < K ? B[(n + threadIdx.y) * K + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < depth; i += 4) {
            float4 v = *reinterpret_cast<const float4*>(&a[threadIdx.y][i]);
            sum += v.x * b[i][threadIdx.x];
            if (i + 1 < depth) sum += v.y * b[i + 1][threadIdx.x];
            if (i + 2 < depth) sum += v.z * b[i + 2][threadIdx.x];
            if (i + 3 < depth) sum += v.w * b[i + 3][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < M && column < K) C[row * K + column] = sum;
}
