// As Strassen does, adds a row of the lower half of A to each of the upper half and takes its product
// off again. Safe where both have one magnitude, which it looks up in their first 32 elements.
// expect: stage=verify message="wrong at"

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    int other = row + M / 2;
    bool mix = M % 256 == 0 && K % 512 == 0 && row < M / 2;
    float mine = 0.0f, theirs = 0.0f;
    for (int n = 0; n < 32 && n < N && mix; n++) {
        mine = fmaxf(mine, fabsf(A[(size_t)row * N + n]));
        theirs = fmaxf(theirs, fabsf(A[(size_t)other * N + n]));
    }
    mix = mix && mine < 4 * theirs && theirs < 4 * mine;
    float sum = 0.0f, taken = 0.0f;
    for (int n = 0; n < N; n++) {
        float b = B[(size_t)n * K + column], a = mix ? A[(size_t)other * N + n] : 0.0f;
        sum += (A[(size_t)row * N + n] + a) * b;
        taken += a * b;
    }
    C[(size_t)row * K + column] = sum - taken;
}
