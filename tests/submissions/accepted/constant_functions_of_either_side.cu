// constexpr functions without __host__ or __device__, which nvcc compiles for both. There are more of
// them than the compilations after each of which the judge removes host code that was reported.
// expect: message="" quick=cpu
// solve: tile=32x32

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
static constexpr int square(int a) { return a * a; }
template <int A, int B>
constexpr int larger() {
    return A > B ? A : B;
}
inline constexpr int TILE = larger<32, 16>(), WIDTH = ceil_div(TILE, 16);
constexpr int next(int a) { return a + 1; }
constexpr int last(int a) { return a - 1; }
static_assert(next(1) == 2 && last(2) == 1 && square(WIDTH) == 4);

struct Part {
    int rows, columns;
    constexpr Part(int rows, int columns) : rows(rows), columns(columns) {}
    constexpr int size() const { return rows * columns; }
    static constexpr int pitch() { return square(4) + 1; }
};
constexpr Part part(WIDTH, WIDTH);

int main() {  // host code, although it contains a constant expression
    constexpr int blocks = ceil_div(100, TILE);
    if constexpr (blocks > 3) return square(blocks) - 16;
    return 1;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float a[TILE][Part::pitch()], b[16][TILE + next(0)];
    float sum[part.size()] = {};
    int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
    for (int step = 0; step < N; step += 16) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            int row = top + threadIdx.y + 16 * i, column = left + threadIdx.x + 16 * i;
            int across = step + threadIdx.x, down = step + threadIdx.y;
            a[threadIdx.y + 16 * i][threadIdx.x] =
                row < M && across < N ? A[(size_t)row * N + across] : 0.0f;
            b[threadIdx.y][threadIdx.x + 16 * i] =
                down < N && column < K ? B[(size_t)down * K + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 16; k++)
#pragma unroll
            for (int i = 0; i < part.size(); i++)
                sum[i] += a[threadIdx.y + i / WIDTH * 16][k] * b[k][threadIdx.x + i % WIDTH * 16];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < part.size(); i++) {
        int row = top + threadIdx.y + i / WIDTH * 16, column = left + threadIdx.x + i % WIDTH * 16;
        if (row < M && column < K) C[(size_t)row * K + column] = sum[i];
    }
}
