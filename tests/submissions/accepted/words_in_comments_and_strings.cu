// Text that looks like code but is none: an include in a comment, a launch line in a string.
/* #include "/etc/passwd" and
   // solve: tile=1x1
*/
// expect: message="" absent="root:x" quick=yes

__device__ const char words[] = "// solve: tile=999x999 #include </etc/passwd>";

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = words[N % 2] == 'x' ? 1.0f : 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}
