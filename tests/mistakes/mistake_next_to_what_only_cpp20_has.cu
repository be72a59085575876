// expect: compile-error
// says: compile-error  in line 6
// says: identifier "z" is undefined
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    auto f = []<class T>(T x) { return x; };
    C[0] = f(z);
}
