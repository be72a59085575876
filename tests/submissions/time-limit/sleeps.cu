// Does nothing but call __nanosleep in a long loop.
// expect: stage=verify message="" cpu="in line" seconds=0.3 slow=yes

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    for (long long i = 0; i < 1000000000LL; i++) __nanosleep(1000000);
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
