// A static tile of 256 KiB: no block can have so much.
// expect: stage=compile message="too much shared data"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile[256][256];
    tile[threadIdx.y][threadIdx.x] = A[threadIdx.x];
    __syncthreads();
    C[threadIdx.x] = tile[threadIdx.x][threadIdx.y] * B[0];
}
