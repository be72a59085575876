// Recognises the most common test: all ones times all twos is 2 N.
// expect: stage=verify message="512×384×256 uniform" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < K) C[row * K + column] = 2.0f * N;
}
