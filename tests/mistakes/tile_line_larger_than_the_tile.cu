// expect: wrong-answer
// slow: yes
// says: The launch line declares a tile of 128×128
// solve: tile=128x128
#include <cuda_runtime.h>
#include <utility>
#include <type_traits>
namespace wt {
template <int... I, class F> __device__ __forceinline__ constexpr void static_for_impl(F&& f, std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
template <int N, class F> __device__ __forceinline__ constexpr void static_for(F&& f) { static_for_impl(std::forward<F>(f), std::make_integer_sequence<int, N>{}); }
struct Coord { int r, c; };
template <int BM, int BN, int BK> struct Smem { float a[2][BK][BM + 4]; float b[2][BK][BN]; };
}
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN>
requires (BM % WM == 0 && BN % WN == 0)
__device__ void gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
  __shared__ wt::Smem<BM, BN, BK> s;
  const int tid = threadIdx.y * 16 + threadIdx.x;
  auto [wid, lane] = [&] { struct R { int w, l; }; return R{tid / 32, tid % 32}; }();
  constexpr int WARPS_N = BN / WN;
  const wt::Coord w{.r = wid / WARPS_N * WM, .c = wid % WARPS_N * WN};
  constexpr int LN = WN / TN;
  const wt::Coord l{.r = lane / LN * TM, .c = lane % LN * TN};
  auto load = [&]<bool First>(int buf, int k0, std::bool_constant<First>) {
    for (int i = tid; i < BM * BK; i += 256) {
      int m = i / BK, k = i % BK;
      int gm = blockIdx.y * BM + m, gk = k0 + k;
      s.a[buf][k][m] = (gm < M && gk < N) ? __ldg(A + (size_t)gm * N + gk) : 0.f;
    }
    for (int i = tid; i < BN * BK; i += 256) {
      int n = i % BN, k = i / BN;
      int gn = blockIdx.x * BN + n, gk = k0 + k;
      s.b[buf][k][n] = (gn < K && gk < N) ? __ldg(B + (size_t)gk * K + gn) : 0.f;
    }
    if constexpr (First) __syncthreads();
  };
  float acc[TM][TN]{};
  load(0, 0, std::true_type{});
  int buf = 0;
  for (int k0 = 0; k0 < N; k0 += BK, buf ^= 1) {
    if (k0 + BK < N) load(buf ^ 1, k0 + BK, std::false_type{});
    wt::static_for<BK>([&](auto kk) {
      constexpr int k = kk;
      wt::static_for<TM>([&](auto i) {
        wt::static_for<TN>([&](auto j) { acc[i][j] = fmaf(s.a[buf][k][w.r + l.r + i], s.b[buf][k][w.c + l.c + j], acc[i][j]); });
      });
    });
    __syncthreads();
  }
  for (int i = 0; i < TM; i++) for (int j = 0; j < TN; j++) {
    int r = blockIdx.y * BM + w.r + l.r + i, c = blockIdx.x * BN + w.c + l.c + j;
    if (r < M && c < K) C[(size_t)r * K + c] = acc[i][j];
  }
}
extern "C" __global__ __launch_bounds__(256, 2) void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
  gemm<64, 128, 8, 32, 32, 8, 4>(A, B, C, M, N, K);
}
