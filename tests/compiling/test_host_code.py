"""Host code is replaced by blanks, and device code stays unchanged."""

import pytest

from harness.compiling.host_code import without_failed_host_code
from harness.compiling.source import parse
from harness.protocol.report import Diagnostic
from tests.compiling.test_source import KERNEL

HOST = "int host() { return 1; }"
GONE = " " * len(HOST)


def device_code(text: str) -> str:
    code = parse(f"{text}\n{KERNEL}").device_code
    assert code.endswith(f"\n{KERNEL}")
    return code.removesuffix(f"\n{KERNEL}")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (HOST, GONE),
        ("int X() {\r\n    return 'X';\n}", "         \n               \n "),
        (f'extern "C" {HOST}', f'extern "C" ;{GONE[1:]}'),
        (f"int a;\ntemplate <int X>\n{HOST}", f"int a;\n                \n;{GONE[1:]}"),
        (f"void gone() = delete;\n{HOST}", f"void gone() = delete;\n{GONE}"),
        (f"#define DEVICE __device__\n{HOST}", f"#define DEVICE __device__\n{GONE}"),
        (f"#include <x.h>\n{HOST}", f"#include <x.h>\n{GONE}"),
        (f"#define FLAG\n{HOST}", f"#define FLAG\n{GONE}"),
        (f"#define int2 int\n{HOST}", f"#define int2 int\n{GONE}"),
    ],
)
def test_a_host_function_leaves_spaces_and_its_line_ends(text: str, left: str) -> None:
    assert device_code(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "#define HD __host__ __device__\nHD int f() { return 1; }",
        "#define INNER __device__\n#define HD INNER\nHD int f() { return 1; }",
        "#define HD INNER\n#define INNER __device__\nHD int f() { return 1; }",
        "#define ATTRIBUTES(x) __device__\nATTRIBUTES(1) int f() { return 1; }",
        "#define CE constexpr\nCE int f() { return 1; }",
        "#define HD __device__\nint f() HD { return 1; }",
        "#define HD __device__\n#undef HD\n#define HD\nHD int f() { return 1; }",
        "__device__ /* int host() */ int f() { return 1; }",
        "__device__ /* ; */ int f() { return 1; }",
        "struct S { constexpr S() = default; };",
        "constexpr struct { int a; } x = {1};",
        "__device__ int f {}",
        "__device__ auto f(P p = {1, 2}) -> decltype(T{}) { return 1; }",
        "template <class T> requires requires(T t) { t + t; } __device__ int f() { return 1; }",
    ],
)
def test_possible_device_code_stays(text: str) -> None:
    assert device_code(text) == text


def test_unmarked_constexpr_functions_are_for_host_and_device() -> None:
    said = "__device__ constexpr int f() { return 1; }\nstruct S { constexpr S() = default; };"
    assert device_code(f"{said}\nconstexpr {HOST}") == f"{said}\n__hdconst {HOST}"
    braces = "struct S { int a; constexpr S() : a{1} { a++; } };"
    assert device_code(braces) == braces.replace("constexpr", "__hdconst")


def at(line: int | None, column: int | None = None) -> list[Diagnostic]:
    """Return a diagnostic of the compiler at this place."""
    return [Diagnostic(severity="error", message="not this", line=line, column=column)]


def test_a_failed_declaration_is_taken_out() -> None:
    code = f"// first\n{HOST} int next() {{ return 2; }}\n"
    for column in (1, 5, len(HOST)):
        left = without_failed_host_code(code, at(2, column))
        assert left == f"// first\n{GONE} int next() {{ return 2; }}\n"
    assert without_failed_host_code(code, at(1, 3)) == code


@pytest.mark.parametrize(
    "text",
    [
        "int f() { return (; }",
        "__device__ int f() { return 1; }",
        "__managed__ int x = f();",
        "__global__ void f() {\nauto g = [](auto x) { return x; };\n#if 1\nint a;\n#endif\n}",
        "static_assert(TILE == 16);",
        "#define KERNEL(name) __global__ void name() {}\nKERNEL(f);",
        "#error no",
    ],
)
def test_possible_device_code_is_never_removed(text: str) -> None:
    errors = [found for line in range(1, 7) for found in at(line, 6)]
    assert without_failed_host_code(text, errors) == text
    assert without_failed_host_code(HOST, at(99, 1)) == HOST, "no place in the file"
