// 02 with one float of padding per row of the tiles, which is a loss here.
//
// Idea: shared memory has 32 banks of 4 bytes. If lanes access different words of one bank, the
// accesses are serialised. With a pitch of 17 instead of 16 floats, the elements of a COLUMN are in
// different banks. This helps if a warp reads a column.
//
// Inputs: FP32 sums, as 01.
//
//     bank of tile[row][column]:   pitch 16: (16 row + column) % 32     2 banks per column
//                                  pitch 17: (17 row + column) % 32    16 banks per column
//
// Expected gain over 02: none, which is the lesson. No warp reads a column here. For tile_a[ty][i]
// a warp reads 2 words, each broadcast to 16 lanes. For tile_b[i][tx] it reads 16 consecutive
// words. So there are no bank conflicts. The padding only prevents the compiler from reading four
// floats of tile_a at a time, which makes the kernel slower.
// In the judge, on an H200: 0.123 x cuBLAS (95 %: 0.123 to 0.123), 65.972 ms, 0.77 x the speed
// of 02; 32 registers, 2176 B of shared memory, 8 blocks a multiprocessor.
// reports/h200/04_padded_tile.json has the rest.

constexpr int TILE = 16, PITCH = TILE + 1;

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile_a[TILE][PITCH];
    __shared__ float tile_b[TILE][PITCH];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;

    float sum = 0.0f;
    for (int n = 0; n < N; n += TILE) {
        tile_a[ty][tx] = row < M && n + tx < N ? A[(size_t)row * N + n + tx] : 0.0f;
        tile_b[ty][tx] = n + ty < N && col < K ? B[(size_t)(n + ty) * K + col] : 0.0f;
        __syncthreads();

        for (int i = 0; i < TILE; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
        __syncthreads();
    }

    if (row < M && col < K) C[(size_t)row * K + col] = sum;
}
