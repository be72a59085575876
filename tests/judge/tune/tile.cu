// Ein Kernel für alle Größen.
// solve: tile=128x64 shared_memory=9216
// tune: solve tile={BM}x{BN} shared_memory={4 * STAGE}
constexpr int BM = 128;   // tune: 64 128 256 64
constexpr int BN = 64;// tune: 64, 128
constexpr int BK = 12, PAD = 0;
constexpr int STAGE = BK * (BM + BN);
#define VECTORS  4   // tune: 2 4
template <int TM = 8>  // tune: 4 8
__device__ void f() {}
static constexpr bool SERPENTINE = true;  // tune: true false
/* tune: not this */
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    const int shift = -2; // tune: -2 -1 0
}
