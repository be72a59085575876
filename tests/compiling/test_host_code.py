"""Host code is replaced by blanks, and device code stays unchanged."""

import json
from pathlib import Path

import pytest

from harness.compiling.host_code import without_failed_code
from harness.compiling.source import parse
from harness.protocol.report import Diagnostic
from tests.compiling.test_source import KERNEL

HOST = "int host() { return 1; }"
GONE = " " * len(HOST)
DEVICE_CODE = json.loads(Path(__file__).with_name("device_code.json").read_text())


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


@pytest.mark.parametrize("text", DEVICE_CODE["stays"])
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
        left, _ = without_failed_code(code, at(2, column), None)
        assert left == f"// first\n{GONE} int next() {{ return 2; }}\n"
    assert without_failed_code(code, at(1, 3), None) == (code, {})


@pytest.mark.parametrize("text", DEVICE_CODE["is never removed"])
def test_possible_device_code_is_never_removed(text: str) -> None:
    errors = [found for line in range(1, 7) for found in at(line, 6)]
    assert without_failed_code(text, errors, None) == (text, {})
    assert without_failed_code(HOST, at(99, 1), None) == (HOST, {}), "no place in the file"
