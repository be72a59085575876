struct Parts {
    unsigned short high, middle, low;
};
__device__ float part(float& x, unsigned short& to) {
    unsigned bits = __float_as_uint(x) & 0xffff0000u;
    to = bits >> 16;
    return x -= __uint_as_float(bits);
}
__device__ float whole(const Parts& p) {
    return __uint_as_float(p.high << 16) +
           (__uint_as_float(p.middle << 16) + __uint_as_float(p.low << 16));
}
__device__ Parts parts(float x) {
    Parts p;
    part(x, p.high), part(x, p.middle), part(x, p.low);
    return p;
}
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ Parts a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int n = 0; n < N; n += 16) {
        a[y][x] = parts(row < M && n + x < N ? A[row * N + n + x] : 0.0f);
        b[y][x] = parts(n + y < N && col < K ? B[(n + y) * K + col] : 0.0f);
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += whole(a[y][k]) * whole(b[k][x]);
        __syncthreads();
    }
    if (row < M && col < K) C[row * K + col] = sum;
}
