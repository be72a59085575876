// Templates that double with every step, 2^30 of them, each different: compiling would take hours.
// expect: stage=compile message="the compiler did not end" compile_seconds=1

template <int DEPTH, long long PATH>
struct Bomb {
    static constexpr long long value =
        Bomb<DEPTH - 1, PATH * 2>::value + Bomb<DEPTH - 1, PATH * 2 + 1>::value;
};
template <long long PATH>
struct Bomb<0, PATH> {
    static constexpr long long value = PATH;
};

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = (float)Bomb<30, 1>::value;
}
