// Truncates A and B to BF16, which has eight bits of significand.
// expect: stage=verify message="look like inputs of low precision" quick=yes

__device__ float cut(float x) { return __uint_as_float(__float_as_uint(x) & 0xffff0000u); }

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += cut(A[row * N + n]) * cut(B[n * K + column]);
    C[row * K + column] = sum;
}
