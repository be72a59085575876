// expect: race
// slow: yes
// says: must then execute `__threadfence();`
// solve: tile=16x16
#include <cuda/atomic>
constexpr int S = 4, MAXT = 8192 / 16;
__device__ unsigned int counters[MAXT * (MAXT / S + 1)];
__device__ float* dummy;
__device__ float workspace[16 * 1024 * 1024];
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  // Fall back to the direct algorithm if the workspace is too small.
  int groups = (gridDim.x + S - 1) / S;
  size_t need = (size_t)gridDim.y * groups * S * 16 * 64;
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty;
  if (need > sizeof(workspace) / sizeof(float)) {
    int col = blockIdx.x * 16 + tx;
    if (row < M && col < K) { float s = 0; for (int n = 0; n < N; n++) s += A[(size_t)row * N + n] * B[(size_t)n * K + col]; C[(size_t)row * K + col] = s; }
    return;
  }
  int group = blockIdx.x / S, part = blockIdx.x % S;
  int parts = min(S, (int)gridDim.x - group * S);
  int per = (N + parts - 1) / parts, lo = part * per, hi = min(N, lo + per);
  float s[4] = {};
  for (int n = lo; n < hi; n++) {
    float a = row < M ? A[(size_t)row * N + n] : 0.f;
    for (int j = 0; j < 4; j++) { int col = group * 64 + j * 16 + tx; if (col < K) s[j] += a * B[(size_t)n * K + col]; }
  }
  size_t base = ((size_t)blockIdx.y * groups + group) * S * 1024;
  float* mine = workspace + base + part * 1024;
  for (int j = 0; j < 4; j++) __stcg(mine + ty * 64 + j * 16 + tx, s[j]);
  __syncthreads();
  __shared__ bool last;
  if (tx + ty == 0) {
    unsigned int ticket = atomicInc(&counters[blockIdx.y * groups + group], parts - 1);
    last = ticket == parts - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int j = 0; j < 4; j++) {
    int col = group * 64 + j * 16 + tx;
    float v = 0;
    for (int p = 0; p < parts; p++) v += __ldcg(workspace + base + p * 1024 + ty * 64 + j * 16 + tx);
    if (row < M && col < K) C[(size_t)row * K + col] = v;
  }
}
