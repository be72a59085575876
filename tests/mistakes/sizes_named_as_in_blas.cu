// expect: memory-error
// says: whose column is n or more, must neither load nor store
// says: the index of the sum must stay below k
__global__ void matrix_multiplication_kernel(float* a, float* b, float* c, int m, int k, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m) return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
