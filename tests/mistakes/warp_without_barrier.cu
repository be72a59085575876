// expect: race
// says: If only threads of one warp share the elements, `__syncwarp();` is enough
// old style warp-synchronous reduction, without __syncwarp
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float part[8][32];
    int t = threadIdx.y * blockDim.x + threadIdx.x, warp = t >> 5, lane = t & 31;
    for (int e = warp; e < 256; e += 8) {
        int row = blockIdx.y * 16 + (e >> 4), col = blockIdx.x * 16 + (e & 15);
        if (row >= M || col >= K) continue;
        float s = 0;
        for (int n = lane; n < N; n += 32) s += A[(size_t)row * N + n] * B[(size_t)n * K + col];
        part[warp][lane] = s;
        if (lane < 16) part[warp][lane] += part[warp][lane + 16];
        if (lane < 8) part[warp][lane] += part[warp][lane + 8];
        if (lane < 4) part[warp][lane] += part[warp][lane + 4];
        if (lane < 2) part[warp][lane] += part[warp][lane + 2];
        if (lane < 1) part[warp][lane] += part[warp][lane + 1];
        if (lane == 0) C[(size_t)row * K + col] = part[warp][0];
    }
}
