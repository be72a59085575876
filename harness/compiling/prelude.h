// Names that nvcc programs have from host headers without including them. Kernels that NVRTC
// compiles have them from here. Types and numbers are written as in libcu++, which may be included
// after this.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned char u_int8_t;
typedef unsigned short u_int16_t;
typedef unsigned int u_int32_t;
typedef unsigned long u_int64_t;

typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef long ssize_t;

// harness/compiling/host_code.py writes these for the constexpr or consteval of a function without a
// word of CUDA.
#define __hdconst __host__ __device__ constexpr
#define __hdceval __host__ __device__ consteval

// harness/compiling/lexical.py writes this for __NVCC__, by which CUDA's headers recognise nvcc.
#define __nvcc__ 1

// Whole programs choose headers by these, and some refuse other systems.
#define __linux__ 1
#define __unix__ 1

#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)

// nvcc accepts this word, which C++17 removed.
#define register

// It would declare an integer as an array of bytes. Kernels have only numbers and pointers as parameters.
#undef __grid_constant__
#define __grid_constant__

// Words of GCC's that nvcc accepts. The operand of `typeof` is an expression here.
#define __extension__
#define __asm__ asm
#define __volatile__ volatile
#define __typeof__(...) __matmul_arena::value<decltype(__VA_ARGS__)>
#define __typeof __typeof__
#define typeof __typeof__
namespace __matmul_arena {
template <typename T> struct without_reference { using type = T; };
template <typename T> struct without_reference<T&> { using type = T; };
template <typename T> struct without_reference<T&&> { using type = T; };
template <typename T> using value = typename without_reference<T>::type;
}

// The same as in libcu++, which defines it unless it is defined.
#define offsetof(type, member) (::size_t) ((char*) &(((type*) 0)->member) - (char*) 0)

#define CHAR_BIT 8
#define INT_MIN   (-INT_MAX - 1)
#define INT_MAX   0x7fffffff
#define UINT_MAX  0xffffffff
#define LLONG_MAX  0x7fffffffffffffffLL
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN  (-SHRT_MAX - 1)
#define SHRT_MAX  0x7fff
#define USHRT_MAX 0xffff
#define LONG_MIN  (-LONG_MAX - 1)
#define LONG_MAX  LLONG_MAX
#define ULONG_MAX ULLONG_MAX
#define LLONG_MIN  (-LLONG_MAX - 1)
#define ULLONG_MAX 0xffffffffffffffffUL
#define INT8_MIN SCHAR_MIN
#define INT16_MIN SHRT_MIN
#define INT32_MIN INT_MIN
#define INT64_MIN LLONG_MIN
#define SIZE_MAX UINT64_MAX
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL

#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16

#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define HUGE_VALF INFINITY
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880
