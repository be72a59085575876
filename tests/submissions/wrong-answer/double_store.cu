// Two threads store every element, one of them without the last product: the value of the later
// store remains.
// expect: stage=verify message="wrong at" quick=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f, last = A[row * N + N - 1] * B[(N - 1) * K + column];
    for (int n = 0; n < N - 1; n++) sum += A[row * N + n] * B[n * K + column];
    C[row * K + column] = sum + last;
    __syncwarp(__activemask());
    int neighbour = column ^ 1;
    if (neighbour < K) C[row * K + neighbour] = sum;
}
