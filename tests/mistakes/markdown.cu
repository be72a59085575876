// expect: compile-error
// says: compile-error  in line 5
// says: this is Markdown, not CUDA; keep only the code between
Here it is:
```cuda
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {}
```
