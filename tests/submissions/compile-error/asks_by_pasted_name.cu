// Whether a file exists, asked under a name that is pasted together: no reader of the text sees the question.
// expect: message="pastes tokens" stage=read line=6
#define PASTE(a, b) a##b
#define ASK(a, b) PASTE(a, b)

#if ASK(__has_, include)("/usr/lib/os-release")
#error yes
#else
#error no
#endif

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {}
