// Each macro expands to ten of the previous one, so ten lines give a billion additions.
// expect: stage=compile message="the compiler did not end" compile_seconds=1

#define ONE +A[threadIdx.x]
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define THOUSAND HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
#define MILLION THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND THOUSAND

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = B[0] MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION
        MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION MILLION;
}
