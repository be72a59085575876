"""What compilers print, read: severity, place and words of each message, and never too many."""

from __future__ import annotations

import pytest

from harness.compiling.diagnostics import (
    MAX_DIAGNOSTICS,
    MAX_MESSAGE,
    bounded,
    declared_at,
    errors_of,
    is_about_an_instance,
    is_about_host_code,
    of_nvrtc,
    of_ptxas,
    unexplained,
    warnings_of,
    with_host_lines,
)
from harness.protocol.report import Diagnostic

LOG = """\
kernel.cu(3): error: identifier "y" is undefined
    float x = y;
              ^

kernel.cu(5): warning #177-D: variable "z" was declared but never referenced
    int z;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

kernel.cu(9): catastrophic error: could not open source file "a.h"
/usr/include/cuda/std/limits(12): warning #20: not yours
/usr/include/cuda/std/limits(14): error: too few arguments
  #include
  ^
kernel.cu(0): error: nowhere
2 errors detected in the compilation of "kernel.cu".
"""


def test_errors_and_warnings_have_their_place() -> None:
    assert of_nvrtc(LOG, "kernel.cu") == [
        Diagnostic(severity="error", message='identifier "y" is undefined', line=3, column=13),
        Diagnostic(
            severity="warning",
            message='variable "z" was declared but never referenced',
            line=5,
            column=7,
        ),
        Diagnostic(severity="error", message='could not open source file "a.h"', line=9),
        Diagnostic(severity="error", message="in limits: too few arguments"),
        Diagnostic(severity="error", message="nowhere"),
    ]


@pytest.mark.parametrize("end", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_only_the_end_of_a_line_ends_it(end: str) -> None:
    """NVRTC quotes the source, in which other characters pass for one."""
    forged = f"  int x = ; // {end}kernel.cu(7): error: forged"
    (found,) = of_nvrtc(f"kernel.cu(3): error: expected an expression\n{forged}\n", "kernel.cu")
    assert found.line == 3


def test_a_line_of_too_many_digits_is_none() -> None:
    assert of_nvrtc(f"kernel.cu({'1' * 5000}): error: forged", "kernel.cu") == []
    said = f"ptxas kernel.ptx, line {'1' * 5000}; error   : forged"
    assert of_ptxas(said, lambda line: line) == []


def test_a_caret_under_the_first_character_is_column_one() -> None:
    log = "kernel.cu(1): error: no\n  x\n  ^\n"
    assert of_nvrtc(log, "kernel.cu")[0].column == 1
    assert of_nvrtc(log.replace("  ^", " ^"), "kernel.cu")[0].column is None
    assert of_nvrtc(log.replace("  ^", "  a ^ b"), "kernel.cu")[0].column is None
    assert of_nvrtc(log.replace("  ^", "  y\n  ^"), "kernel.cu")[0].column is None


@pytest.mark.parametrize("file", ["limits", "std/limits", "/usr/include/cuda/std/limits"])
def test_a_header_is_named_without_its_folder(file: str) -> None:
    (found,) = of_nvrtc(f"{file}(14): error: too few arguments\n", "kernel.cu")
    assert found == Diagnostic(severity="error", message="in limits: too few arguments")


def test_what_ptxas_says_is_put_on_the_line_of_the_source() -> None:
    log = """\
ptxas kernel.ptx, line 17; error   : Unknown modifier '.surprise'
ptxas kernel.ptx, line 18; warning : Instruction is slow
ptxas fatal   : Ptx assembly aborted due to errors
ptxas info    : 0 bytes gmem
ptxas info    : (C7510) Potential Performance Loss: too slow
ptxas info    : (C7519) warpgroup.arrive is injected in around line 9875 by compiler
ptxas warning : Too many registers
"""
    asked: list[int] = []

    def line_of(line: int) -> int | None:
        asked.append(line)
        return line - 10 if line == 17 else None

    assert of_ptxas(log, line_of) == [
        Diagnostic(severity="error", message="ptxas: Unknown modifier '.surprise'", line=7),
        Diagnostic(severity="warning", message="ptxas: Instruction is slow"),
        Diagnostic(severity="error", message="ptxas: Ptx assembly aborted due to errors"),
        Diagnostic(severity="warning", message="ptxas: Potential Performance Loss: too slow"),
        Diagnostic(severity="warning", message="ptxas: Too many registers"),
    ]
    assert asked == [17, 18]


@pytest.mark.parametrize("kind", ["function", "variable"])
def test_code_for_the_host_is_known_by_what_nvrtc_says_of_it(kind: str) -> None:
    message = f"A {kind} without annotations is considered a host {kind}, and host {kind}s are not"
    assert is_about_host_code(Diagnostic(severity="error", message=message))
    assert not is_about_host_code(Diagnostic(severity="error", message='"host" is undefined'))


def several(count: int, severity: str) -> list[Diagnostic]:
    return [
        Diagnostic(severity=severity, message=f"{severity} {n}")  # type: ignore[arg-type]
        for n in range(count)
    ]


def test_errors_and_warnings_are_told_apart() -> None:
    mixed = [*several(2, "warning"), *several(2, "error"), *several(1, "note")]
    assert errors_of(mixed) == tuple(several(2, "error"))
    assert warnings_of(mixed) == tuple(several(2, "warning"))


def test_of_too_many_the_errors_are_kept() -> None:
    mixed = [*several(MAX_DIAGNOSTICS - 1, "warning"), *several(1, "error")]
    assert bounded(mixed) == mixed
    mixed += several(2, "error")[1:]
    assert bounded(mixed) == [*several(2, "error"), *several(MAX_DIAGNOSTICS - 2, "warning")]


def test_a_long_message_is_cut() -> None:
    fits, long = (
        Diagnostic(severity="error", message="x" * (MAX_MESSAGE + more), line=4) for more in (0, 1)
    )
    cut = Diagnostic(severity="error", message="x" * MAX_MESSAGE + "…", line=4)
    assert bounded([fits, long]) == [fits, cut]


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("one\n  two  \n\n \n", "two"),
        ("", "the compiler gave no reason"),
        (" \n", "the compiler gave no reason"),
    ],
)
def test_a_log_without_a_known_message_is_known_by_its_last_line(log: str, line: str) -> None:
    assert unexplained(log) == (Diagnostic(severity="error", message=line),)


def test_what_a_line_declares_is_its_first_name() -> None:
    code = "int TILE = 16, W;\nfloat f(int c) { return c; }\n\nint TILE;\nint x[2];\n"
    found = [Diagnostic(severity="error", message="", line=n) for n in (4, 2, 1, 3, 5, 99, None)]
    assert declared_at(found, code) == {"TILE": 1, "f": 2, "x": 5}
    assert declared_at(found, code.rstrip("\n")) == {"TILE": 1, "f": 2, "x": 5}


@pytest.mark.parametrize(
    ("message", "is_about"),
    [('in __nv_name_map: identifier "N" is undefined', True), ('identifier "N"', False)],
)
def test_what_is_said_of_an_instance_that_was_asked_for_is_known(
    message: str, is_about: bool
) -> None:
    assert is_about_an_instance(Diagnostic(severity="error", message=message)) is is_about


def test_only_what_is_unknown_and_declared_is_explained() -> None:
    said = ('identifier "f" is undefined', 'identifier "g" is undefined', 'f is "f"')
    errors = [Diagnostic(severity="error", message=message, line=9) for message in said]
    first, *others = with_host_lines(errors, {"f": 2})
    assert first.message.startswith(
        f"{said[0]}: line 2 defines it for the host; write `__device__`"
    )
    assert others == errors[1:] and first.line == 9
