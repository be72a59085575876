// A constant whose computation never ends.
// expect: stage=compile message="line 12"

__device__ constexpr long long forever() {
    long long i = 1;
    while (i) i |= 1;
    return i;
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    constexpr long long answer = forever();
    C[0] = (float)answer;
}
