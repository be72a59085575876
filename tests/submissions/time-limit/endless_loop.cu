// Never ends. The condition can only be known at run time.
// expect: stage=verify message="did not end within" cpu="in line 10" seconds=0.3

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    const volatile float* watched = A;
    // ptxas would remove the loop if it had no loads
    while (watched[0] < 1e30f) continue;
    if (row < M && column < K) C[row * K + column] = 0.0f;
}
