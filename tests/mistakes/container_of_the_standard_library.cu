// expect: compile-error
// says: namespace "std" has no member "vector"; it is for host code only
#include <vector>
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    std::vector<float> v;
}
