// Honest: it has variables that are initialised with addresses of array elements and of functions.
// expect: message="" quick=yes

__device__ float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ float* two = &numbers[1];
__device__ float* table[] = {numbers + 3, numbers + 4 - 2};

struct Step {
    float* by;
    int sign;
};
__constant__ Step steps[] = {{numbers + 3, 1}, {numbers + 3, -1}};

__device__ float keep(float x) { return x; }
__device__ float negate(float x) { return -x; }
__device__ float (*functions[])(float) = {keep, negate};

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    float nothing = *table[1] - *two - 1.0f;
    for (int i = 0; i < 2; i++) nothing += *steps[i].by * steps[i].sign;
    C[(size_t)row * K + column] = functions[row & 1](row & 1 ? -sum : sum) + nothing;
}
