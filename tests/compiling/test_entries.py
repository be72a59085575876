"""Which kernel of a program is meant, and what keeps it from its launch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.compiling import entries
from harness.compiling.entries import MAX_DEVICE_BYTES
from harness.compiling.machine_code import EntryPoint, Parameter
from harness.protocol.report import Diagnostic, Resources
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.syntax import Function, Program

NAME = "_Z28matrix_multiplication_kernelPKfS0_Pfiii"
PLAIN = "matrix_multiplication_kernel"
PARAMETERS = (
    ".param .u64 a, .param .u64 b, .param .u64 c, .param .u32 m, .param .u32 n, .param .u32 k"
)


def entry(name: str = NAME, parameters: str = PARAMETERS, directives: str = "") -> str:
    return f".visible .entry {name}({parameters})\n{directives}\n{{\nret;\n}}\n"


def program(*functions: str, before: str = "") -> Program:
    return parse(f".version 9.0\n.target sm_90a\n.address_size 64\n{before}\n{''.join(functions)}")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (NAME, PLAIN),
        (PLAIN, PLAIN),
        ("_Z8multiplyPf", "multiply"),
        ("_ZN1a8multiplyEPf", "multiply"),
        ("_ZN1a8multiplyILi3EEEvPf", "multiply"),
        ("_ZNSt8multiplyEPf", "_ZNSt8multiplyEPf"),
        ("_Z8multiplyI3OneEv3Two", "multiply"),
        ("_Z8multiply5Tiles", "multiply"),
        ("8multiply", "8multiply"),
        ("my8multiply", "my8multiply"),
        (f"_Z{'1' * 5000}x", f"{'1' * 4991}x"),
    ],
)
def test_a_symbol_has_the_name_of_its_source(symbol: str, name: str) -> None:
    assert entries.base_name(symbol) == name


def test_the_kernel_is_found_among_others() -> None:
    made = program(entry("_Z5otherv", ""), entry(), ".func f()\n{\nret;\n}\n")
    found = entries.find(made)
    assert isinstance(found, Function) and found.name == NAME
    assert [each.name for each in entries.entries(made)] == ["_Z5otherv", NAME]


def test_without_it_others_are_named() -> None:
    asked = (
        "no kernel named matrix_multiplication_kernel; write `__global__ void "
        "matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, "
        "int K)`"
    )
    assert entries.find(program()) == asked
    four = program(*(entry(name, "") for name in ("d", "_Z1av", "c", "b")))
    assert entries.find(four) == f"{asked} (found: a, b, c)"


def test_two_of_the_name_are_one_too_many() -> None:
    twice = program(entry(), entry(PLAIN))
    assert entries.find(twice) == "2 kernels are named matrix_multiplication_kernel; keep one"


@pytest.mark.parametrize(
    "parameters",
    [
        PARAMETERS.rpartition(", ")[0],
        f"{PARAMETERS}, .param .u32 more",
        PARAMETERS.replace(".u32 k", ".u64 k"),
        PARAMETERS.replace(".u32 k", ".f32 k"),
        PARAMETERS.replace(".u64 a", ".f64 a"),
        PARAMETERS.replace(".u32 k", ".align 4 .b8 k[4]"),
        "",
    ],
)
def test_other_parameters_are_refused(parameters: str) -> None:
    message = (
        "the parameters of matrix_multiplication_kernel are not "
        "(const float* A, const float* B, float* C, int M, int N, int K)"
    )
    assert entries.find(program(entry(parameters=parameters))) == message


POINTERS = [Parameter(0, 8), Parameter(8, 8), Parameter(16, 8)]
INTEGERS = [Parameter(24, 4), Parameter(28, 4), Parameter(32, 4)]


@pytest.mark.parametrize(
    ("parameters", "size", "right"),
    [
        ([*POINTERS, *INTEGERS], 36, True),
        ([*POINTERS, *INTEGERS], 40, False),
        ([*POINTERS, *INTEGERS[:2]], 32, False),
        ([*POINTERS, *INTEGERS[:2]], 36, False),
        ([*POINTERS, *INTEGERS, Parameter(36, 4)], 36, False),
        ([*POINTERS, *INTEGERS[:2], Parameter(36, 4)], 36, False),
        ([*POINTERS, *INTEGERS[:2], Parameter(32, 8)], 36, False),
        ([], 36, False),
    ],
)
def test_the_machine_code_takes_what_the_launcher_gives(
    parameters: list[Parameter], size: int, right: bool
) -> None:
    point = EntryPoint(True, 32, tuple(parameters), size)
    assert entries.takes_the_problems_parameters(point) is right


def variables(size: int, space: str = "global") -> Program:
    """A program with one variable, and one more of a byte in a function."""
    made = program(entry(), before=f".{space} .align 4 .b8 v[16];")
    function = made.functions[NAME]
    (name, variable), *_ = made.variables.items()
    made.variables[name] = replace(variable, size=size)
    function.variables["w"] = replace(variable, size=1)
    return made


def test_device_memory_is_bounded_over_all_variables() -> None:
    assert entries.memory_problem(variables(MAX_DEVICE_BYTES - 1)) is None
    assert entries.memory_problem(variables(MAX_DEVICE_BYTES)) == (
        f"the kernel's __device__ variables take {MAX_DEVICE_BYTES + 1} bytes; "
        f"a submission gets at most {MAX_DEVICE_BYTES}"
    )
    assert entries.memory_problem(variables(MAX_DEVICE_BYTES, "const")) is not None
    assert entries.memory_problem(variables(MAX_DEVICE_BYTES, "shared")) is None


def test_what_leaves_memory_undefined_is_refused_with_its_line() -> None:
    text = entry().replace(
        "ret;", ".reg .b64 %rd1;\n.loc 1 7 5\ndiscard.global.L2 [%rd1], 128;\nret;"
    )
    before = '.file 1 "kernel.cu"'
    assert entries.undefined_effect(program(entry())) is None
    assert entries.undefined_effect(program(text, before=before)) == Diagnostic(
        severity="error",
        message="`discard.global.L2` leaves memory undefined, which is not allowed",
        line=7,
    )
    nowhere = entries.undefined_effect(program(text.replace(".loc 1 7 5\n", ""), before=before))
    assert nowhere is not None and nowhere.line is None


def problem(directives: str) -> Any:
    return entries.launch_problem(program(entry(directives=directives)).functions[NAME])


@pytest.mark.parametrize(
    ("directives", "said"),
    [
        ("", None),
        (".maxntid 256, 1, 1", None),
        (".maxntid 16, 16, 1", None),
        (".maxntid 1024, 1, 1", None),
        (".maxntid 255, 1, 1", "allow 255 threads a block; the launch has 256"),
        (".maxntid 16, 8, 1", "allow 128 threads a block; the launch has 256"),
        (".reqntid 16, 16, 1", None),
        (".reqntid 16, 16", None),
        (
            ".reqntid 256",
            "the kernel requires blocks of (256,) threads; the launch has (16, 16, 1)",
        ),
        (".reqntid 16, 16, 2", "requires blocks of (16, 16, 2) threads"),
    ],
)
def test_blocks_are_those_of_the_rules(directives: str, said: str | None) -> None:
    found = problem(directives)
    assert found is None if said is None else said in found


def test_fewer_threads_than_the_rules_are_counted() -> None:
    assert problem(".maxntid 64, 2, 1") == (
        "the kernel's __launch_bounds__ allow 128 threads a block; the launch has 256"
    )


@pytest.mark.parametrize(
    ("directives", "said"),
    [
        (".reqnctapercluster 8, 1, 1", None),
        (".explicitcluster\n.reqnctapercluster 2, 2, 2", None),
        (
            ".reqnctapercluster 3, 3, 1",
            "the kernel's clusters have 9 blocks; a GPU allows 1 to 8",
        ),
        (
            ".explicitcluster",
            "the kernel requires clusters of no given size; write the sizes in __cluster_dims__",
        ),
        (
            ".blocksareclusters\n.reqntid 16, 16, 1\n.reqnctapercluster 2, 1, 1",
            "the kernel has its grid counted in clusters; the launch counts it in blocks",
        ),
    ],
)
def test_clusters_have_a_size_that_a_gpu_can_run(directives: str, said: str | None) -> None:
    assert problem(directives) == said


def no_room(arch: str = "sm_90a", **bytes_of: int) -> str | None:
    every = dict.fromkeys(Resources.model_fields, 0)
    return entries.shared_memory_problem(Resources(**every | bytes_of), arch)


def test_shared_memory_is_what_the_architecture_has() -> None:
    assert no_room(static_shared_bytes=32448, dynamic_shared_bytes=200_000) is None
    assert no_room(static_shared_bytes=32449, dynamic_shared_bytes=200_000) == (
        "the kernel asks for 232449 bytes of shared memory a block; sm_90a gives a block at most "
        "232448"
    )
    assert "sm_75 gives a block at most 65536" in str(no_room("sm_75", static_shared_bytes=65_537))
