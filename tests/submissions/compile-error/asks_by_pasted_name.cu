// Tests whether a file exists with a pasted __has_include, which a search of the text does not find.
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
