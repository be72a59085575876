// expect: compile-error
// says: compile-error  in line 4
// says: this is Python, not CUDA; keep only the kernel's code
import cupy as cp

kernel = cp.RawKernel(r'''
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
}
''', 'matrix_multiplication_kernel')
