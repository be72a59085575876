// std::vector in device code.
// expect: stage=compile message="" slow=yes

#include <vector>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    std::vector<float> sum(M);
    C[0] = sum[0];
}
