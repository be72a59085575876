// __has_include with a name that comes from a macro.
// expect: stage=read message="must name its header literally" line=5

#define FILE_NAME "/etc/shadow"
#if __has_include(FILE_NAME)
#define ANSWER 1.0f
#endif

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = ANSWER;
}
