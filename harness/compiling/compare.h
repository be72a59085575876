// What the compiler needs of <compare> for operator<=>. libcu++ does not have this header.
#pragma once
#if __cplusplus >= 202002L
namespace __matmul_arena {
struct zero {
    __hdceval zero(int) {}
};
}  // namespace __matmul_arena

namespace std {
struct partial_ordering {
    signed char value;
    static const partial_ordering less, equivalent, greater, unordered;
    __hdconst bool operator==(const partial_ordering&) const = default;
};
struct weak_ordering {
    signed char value;
    static const weak_ordering less, equivalent, greater;
    __hdconst bool operator==(const weak_ordering&) const = default;
    __hdconst operator partial_ordering() const { return {value}; }
};
struct strong_ordering {
    signed char value;
    static const strong_ordering less, equal, equivalent, greater;
    __hdconst bool operator==(const strong_ordering&) const = default;
    __hdconst operator partial_ordering() const { return {value}; }
    __hdconst operator weak_ordering() const { return {value}; }
};

inline constexpr partial_ordering partial_ordering::less{-1};
inline constexpr partial_ordering partial_ordering::equivalent{0};
inline constexpr partial_ordering partial_ordering::greater{1};
inline constexpr partial_ordering partial_ordering::unordered{2};
inline constexpr weak_ordering weak_ordering::less{-1};
inline constexpr weak_ordering weak_ordering::equivalent{0};
inline constexpr weak_ordering weak_ordering::greater{1};
inline constexpr strong_ordering strong_ordering::less{-1};
inline constexpr strong_ordering strong_ordering::equal{0};
inline constexpr strong_ordering strong_ordering::equivalent{0};
inline constexpr strong_ordering strong_ordering::greater{1};

// A comparison of a category with 0 calls one of these, also where it is written `a < b`.
#define COMPARISONS(T)                                                                             \
    __hdconst bool operator==(T a, __matmul_arena::zero) { return a.value == 0; }                  \
    __hdconst bool operator<(T a, __matmul_arena::zero) { return a.value == -1; }                  \
    __hdconst bool operator>(T a, __matmul_arena::zero) { return a.value == 1; }                   \
    __hdconst bool operator<=(T a, __matmul_arena::zero) { return a.value == 0 || a.value == -1; } \
    __hdconst bool operator>=(T a, __matmul_arena::zero) { return a.value == 0 || a.value == 1; }  \
    __hdconst bool operator<(__matmul_arena::zero, T a) { return a > 0; }                          \
    __hdconst bool operator>(__matmul_arena::zero, T a) { return a < 0; }                          \
    __hdconst bool operator<=(__matmul_arena::zero, T a) { return a >= 0; }                        \
    __hdconst bool operator>=(__matmul_arena::zero, T a) { return a <= 0; }
COMPARISONS(partial_ordering)
COMPARISONS(weak_ordering)
COMPARISONS(strong_ordering)
#undef COMPARISONS

__hdconst bool is_eq(partial_ordering a) { return a == 0; }
__hdconst bool is_neq(partial_ordering a) { return a != 0; }
__hdconst bool is_lt(partial_ordering a) { return a < 0; }
__hdconst bool is_gt(partial_ordering a) { return a > 0; }
__hdconst bool is_lteq(partial_ordering a) { return a <= 0; }
__hdconst bool is_gteq(partial_ordering a) { return a >= 0; }
}  // namespace std
#endif
