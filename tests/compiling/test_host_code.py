"""Host code is set aside where it is certain, to the byte, and nothing else is."""

from __future__ import annotations

import pytest

from harness.compiling.host_code import blanked, without_declarations_at
from harness.compiling.source import parse, without_host_code
from harness.compiling.syntax import descendants, syntax_tree
from harness.report import Diagnostic
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
        "#define HD __device__\n#undef HD\n#define HD\nHD int f() { return 1; }",
        "__device__ /* int host() */ int f() { return 1; }",
        "struct S { constexpr S() = default; };",
        "constexpr struct { int a; } x = {1};",
        "__device__ int f {}",
    ],
)
def test_what_may_be_for_the_device_stays(text: str) -> None:
    assert device_code(text) == text


def test_a_declaration_is_taken_out_where_the_compiler_says_so() -> None:
    code = f"// first\n{HOST} int next() {{ return 2; }}\n"
    for column in (1, 5, len(HOST)):
        left = without_declarations_at(code, [(2, column)])
        assert left == f"// first\n{GONE} int next() {{ return 2; }}\n"
    assert without_declarations_at(code, [(1, 3)]) == code


@pytest.mark.parametrize("text", ["int f() { return (; }", "__device__ int f() { return 1; }"])
def test_a_declaration_that_may_be_more_stays(text: str) -> None:
    assert without_declarations_at(text, [(1, 5)]) == text


def test_a_place_without_a_column_is_the_first_of_its_line() -> None:
    for code, left in ((HOST, GONE), (f" {HOST}", f" {HOST}")):
        found = Diagnostic(severity="error", message="host code", line=1)
        assert without_host_code(code, [found, found.model_copy(update={"line": None})]) == left


def test_the_root_itself_can_be_blanked() -> None:
    code = HOST.encode()
    root = next(descendants(syntax_tree(code)))
    assert blanked(code, [root]) == GONE.encode()
