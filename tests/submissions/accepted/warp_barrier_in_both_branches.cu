// Both halves of a warp load their rows of A in branches of their own. By PTX, all lanes that a barrier of the warp
// names may meet there from several places.
// expect: message="" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile[8][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float* rows = tile[y / 2];
    float sum = 0.0f;
    for (int base = 0; base < N; base += 16) {
        bool inside = base + x < N;
        if (y % 2 == 0) {
            rows[x] = inside && row + 1 < M ? A[(size_t)(row + 1) * N + base + x] : 0.0f;
            __syncwarp();
            for (int n = 0; n < 16 && base + n < N; n++)
                if (column < K) sum += rows[16 + n] * B[(size_t)(base + n) * K + column];
            __syncwarp();
        } else {
            rows[16 + x] = inside && row - 1 < M ? A[(size_t)(row - 1) * N + base + x] : 0.0f;
            __syncwarp();
            for (int n = 0; n < 16 && base + n < N; n++)
                if (column < K) sum += rows[n] * B[(size_t)(base + n) * K + column];
            __syncwarp();
        }
    }
    if (row < M && column < K) C[(size_t)row * K + column] = sum;
}
