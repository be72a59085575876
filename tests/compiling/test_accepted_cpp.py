"""C++ that nvcc accepts in kernel files compiles here, too."""

from pathlib import Path

import pytest

from harness.compiling import headers
from harness.compiling.headers import Include
from tests.compiled import compiled
from tests.sources import KERNEL, NAME, PARAMETERS, kernel

LAUNCH = "<<<dim3((K + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(A, B, C, M, N, K)"
TEMPLATE = f"template <int T> {KERNEL}"


LANGUAGE = {
    "generic lambda in a kernel": kernel(
        "auto at = [](auto* p, auto i) { return p[i]; };\n"
        "auto add = [&](auto n, float& s) { s += at(A, n) * at(B, n); };\n"
        "float s = 0; for (int n = 0; n < N; n++) add(n, s); C[0] = s;"
    ),
    "generic lambda at file scope": "constexpr auto at = [](auto* p, auto i) { return p[i]; };\n"
    "auto twice = [](auto x) { return x + x; };\n" + kernel("C[0] = twice(at(A, 1));"),
    "lambda for the device at file scope": "auto f = [] __device__(float x) { return x; };\n"
    "__device__ auto g = [](float x) { return x; };\n" + kernel("C[0] = g(f(A[0]));"),
    "structured bindings": "struct P { int x, y; }; __device__ P p() { return {1, 2}; }\n"
    + kernel("auto [x, y] = p(); if constexpr (sizeof(float) == 4) C[x] = y;"),
    "block of extern C": 'extern "C" {\n__device__ int one() { return 1; }\nint host(int x);\n'
    f"{KERNEL}\nvoid solve({PARAMETERS}) {{ {NAME}{LAUNCH}; }}\n}}",
    "empty blocks": f'extern "C" {{}}\nnamespace {{}}\n{KERNEL}',
    "strings and tables of host pointers": "#include <map>\n#include <string>\n"
    'const char* title = "x";\nstatic const char* const names[] = {"a", nullptr};\n'
    'float* buffers[4];\nstd::map<std::string, int> sizes = {{"a", 1}};\n'
    f'struct Row {{ const char* name; int n; }};\nRow rows[] = {{{{"x", 1}}}};\n{KERNEL}',
    "comments for documentation": "/** It's \"quoted\n * @param A */\n/// don't\n//! \\file\n/**/\n"
    + KERNEL,
    "byte order mark": "\ufeff#include <cstdint>\n" + KERNEL,
    "carriage returns": f"#define TWO \\\n  2\n/* a\n b */\n{KERNEL}".replace("\n", "\r\n"),
    "host members of a class": "#include <string>\n#include <iostream>\n"
    "struct S { int n = 64; std::string name; __host__ __device__ int get() const { return n; }\n"
    "void print() { std::cout << name; } };\n" + kernel("S* s = nullptr; if (s) C[0] = s->get();"),
    "variables in registers": kernel("register float s = A[0]; C[0] = s;"),
    "integers of 128 bits": kernel("__int128 i = M; i *= N; C[0] = (float)(int)(i >> 3);"),
    "numbers of <cfloat>": "#include <cfloat>\n"
    + kernel("C[0] = FLT_MANT_DIG + FLT_DIG + FLT_MAX;"),
    "classes with attributes": "#define ALIGNED(n) __attribute__((aligned(n)))\n#define PLAIN\n"
    "struct __align__(8) Pair { int x, y; __device__ int sum() const { return x + y; } };\n"
    "template <typename T> struct ALIGNED(16) Four { T x[4]; int get() const { return 4; } };\n"
    "struct PLAIN One { int x; };\nunion __align__(4) Bits { float f; unsigned u; };\n"
    + kernel("Pair p{1, 2}; Four<float> f{}; One o{1}; Bits b{}; C[p.sum() + o.x] = f.x[0] + b.f;"),
    "classes and namespaces behind macros": "#define API\n#define BEGIN namespace a {\n"
    "#define END }\nAPI struct One { int x; };\nBEGIN\nstruct Two { int x; };\n"
    "__device__ int three() { return 3; }\nEND\n"
    + kernel("One o{1}; a::Two t{2}; C[o.x + t.x + a::three()] = offsetof(a::Two, x);"),
    "designated initialisers": "struct Shape { int M, N, K; };\n"
    "__device__ int size(Shape s) { return s.M * s.N; }\n"
    + kernel("Shape s{.M = M, .N = N, .K = K}; C[s.K] = size({.M = 1, .N = 2});"),
    "concepts and other words of C++20": "template <typename T>\n"
    "concept Number = requires(T a, T b) { a * b + b; };\nconsteval int two() { return 2; }\n"
    "template <Number T> __device__ T twice(T x) requires(sizeof(T) == 4) { return two() * x; }\n"
    + kernel("auto f = []<typename T>(T x) { return x; }; C[0] = f(twice(A[0]));"),
    "typeof": "template <typename T>\n"
    "__device__ T twice(T& x) { __typeof__(x) y = x; return y + x; }\n"
    + kernel("__typeof__(A[0] * 2) s = 0; typeof(M) m = 1; s += m; C[0] = twice(s);"),
    "statement expressions": "#define MAX(a, b) \\\n ({ __typeof__(a) _a = (a); \\\n"
    "    __typeof__(b) _b = (b); \\\n _a > _b ? _a : _b; })\n"
    "__device__ int clear(float* C) {\n"
    "return ({ int i = 0; for (; i < 9; ++i) { C[i] = 0; } i; }); }\n"
    + kernel(
        "C[0] = MAX(M, MAX(N, K)) + ({ struct P { int x; }; P{2}; }).x + clear(C);\n"
        "({ if (M > 1) { C[1] = 2; } }); ({ do { C[2] = 3; } while (0); });"
    ),
    "statement expressions behind words": "#define TWO ({ int two = 2; two; })\n"
    "__device__ int three() { return({ int three = 3; three; }); }\n"
    + kernel("if (M > 1) ({ C[0] = TWO; }); else ({ C[0] = three(); });"),
    "blocks as arguments of macros": "#define REPEAT(block) block block block\n"
    "#define ONCE(block) do block while (0)\n"
    + kernel("int n = 0; REPEAT({ C[n] = A[n]; n++; }) ONCE ({ if (n < N) { C[n] = 0; } });"),
    "grid dependencies": kernel("cudaGridDependencySynchronize();"),
    "static kernel": f"static {KERNEL}",
    "constant of the grid": KERNEL.replace("int K)", "const __grid_constant__ int K)"),
    "kernel in a nameless namespace": f"namespace {{ {KERNEL} }}",
    "macros for device functions": "#ifdef __CUDACC__\n#define HD __host__ __device__\n#else\n"
    "#define HD\n#endif\nHD inline float f(float x) { return x; }\n" + kernel("C[0] = f(A[0]);"),
}

TEMPLATES = {
    "launched directly": f"{TEMPLATE} void solve({PARAMETERS}) {{ {NAME}<16>{LAUNCH}; }}",
    "launched by a template": f"constexpr int T = 16;\n{TEMPLATE} template <int S> void run"
    f"({PARAMETERS}) {{ {NAME}<S>{LAUNCH}; }}\n"
    f"void solve({PARAMETERS}) {{ run<T>(A, B, C, M, N, K); }}",
    "defaults, not launched": f"template <int T = 16, bool Edge = true> {KERNEL}",
    "type that is deduced": f"template <typename X> {KERNEL}".replace("const float*", "const X*"),
    "pointers that are not const": f"template <typename X> {KERNEL}".replace("const float*", "X*"),
    "one instance": f"{TEMPLATE} template __global__ void {NAME}<16>({PARAMETERS});",
    "in a namespace": f"namespace a {{ template <int T = 16> {KERNEL} }}",
}

HEADERS = {
    "of the standard library": "#include <algorithm>\n#include <array>\n#include <bit>\n"
    "#include <cmath>\n#include <cstddef>\n#include <cstdint>\n#include <limits>\n"
    "#include <optional>\n#include <span>\n#include <tuple>\n#include <type_traits>\n"
    "#include <utility>\n"
    + kernel(
        "std::uint32_t i = 1; std::size_t j = i; std::ptrdiff_t d = 2; C[j] = d;\n"
        "C[0] = std::fma(A[0], A[1], std::sqrt(std::abs(A[2]))) + std::fmod(A[3], 2.0f);\n"
        "C[1] = std::clamp(std::max(A[0], std::min(A[1], 2.0f)), 0.0f, 1.0f);\n"
        "auto [a, b] = std::make_tuple(1, 2.0f); std::swap(C[0], C[1]); C[a] = std::move(b);\n"
        "C[2] = std::numeric_limits<float>::max();\n"
        "static_assert(std::is_same_v<std::remove_const_t<const int>, int>);\n"
        "std::array<float, 4> four{}; C[3] = four[1] + four.size();\n"
        "std::span<const float> s(A, N); std::optional<float> o; for (auto x : s) o = x;\n"
        "C[4] = o.value_or(1) + std::countr_zero(8u);"
    ),
    "namespace std without a header": "using namespace std;\n"
    + kernel("array<float, 2> a{}; C[0] = abs(max(sqrt(A[0]), a[0])) + abs(N) + pow(A[1], 2.0f);"),
    "of libcu++ and CUB": "#include <cuda/std/array>\n#include <cuda/atomic>\n"
    "#include <cuda/std/span>\n#include <cub/cub.cuh>\n"
    "using Sum = cub::BlockReduce<float, 256>;\n"
    + kernel(
        "using R = cub::WarpReduce<float>; __shared__ R::TempStorage t[8];\n"
        "float s = R(t[threadIdx.y / 2]).Sum(A[threadIdx.x]); C[0] = s;\n"
        "cuda::std::array<float, 2> a{}; C[1] = a[0];"
    ),
}

HOST = {
    "the driver's header": "#include <cuda.h>\nCUdevice device;",
    "a library": "#include <thrust/host_vector.h>\nthrust::host_vector<float> a(3);",
    "a class": "#include <string>\nclass Named { std::string name; public: void f() {} };",
    "what is built on a class": "#include <string>\n"
    "struct A { std::string a; }; struct B { A a; }; typedef B D; B b; using E = D; E e;",
    "a class in a namespace": "#include <map>\nnamespace n { struct S { std::map<int, int> m; }; }",
    "a template": "template <class T> class Buffer { T* p; Buffer() { cudaMalloc(&p, 4); } };",
    "a generic lambda": "template <class F> __device__ int call(F f) { return f(1); }\n"
    "__device__ int one() { return call([](auto x) { return x; }); }",
}
"""Code before the kernel."""

EVERYTHING = {
    **LANGUAGE,
    **TEMPLATES,
    **HEADERS,
    **{name: f"{code}\n{KERNEL}" for name, code in HOST.items()},
}


@pytest.mark.parametrize("source", EVERYTHING.values(), ids=EVERYTHING.keys())
def test_code_that_nvcc_accepts_compiles(source: str) -> None:
    assert compiled(source)


def test_a_library_of_the_host_is_not_read_from_the_toolkit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A whole CUDA toolkit has cuBLAS next to the device headers, and NVRTC cannot read it."""
    (tmp_path / "cublas_v2.h").write_text("#include <stdint.h>\n")
    (tmp_path / "cuda_fp16.h").touch()
    monkeypatch.setattr(headers, "include_directories", lambda: (tmp_path,))
    includes = [Include("cublas_v2.h", 1), Include("cuda_fp16.h", 2)]
    virtual, warnings = headers.stand_ins(includes, "")
    assert "cublas_v2.h" in virtual and "cuda_fp16.h" not in virtual
    assert not warnings
