// Asks for files of the machine by absolute and by relative path. Every name that is not CUDA's own
// gets an empty stand-in, and a warning: nothing is read.
// expect: message="" warning="not available to a submission" absent="root:x" quick=yes

#include "/etc/passwd"
#include "../../../../../../../../etc/passwd"
#include </proc/self/environ>

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
