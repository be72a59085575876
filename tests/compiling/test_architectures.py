"""Tests of compiling for GPUs that are not here: what runs on them, and what they lack."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.compiling.architectures import lacking
from harness.compiling.compiler import compile_source
from harness.protocol.compiler import ARCHITECTURES, Compile, Compiled
from harness.protocol.report import Diagnostic, Unsupported

SOLUTIONS = sorted((Path(__file__).parents[2] / "solutions").glob("*.cu"))
QUICK = ("01", "14", "30", "33")
"""Solutions that lack something for different reasons. All others take minutes: they are compiled
where the variable MATMUL_ARENA_ALL_ARCHITECTURES is set."""

CP_ASYNC = "exists on sm_80 or newer; this is sm_75"
WGMMA = "`wgmma.fence` exists on sm_90a only"
SHARED_MEMORY = "bytes of shared memory a block"


def lacks(number: int) -> dict[str, str]:
    """Return what is lacking for a solution, by architecture."""
    if number <= 12:
        return {}
    if number in (20, 30):
        small = ["sm_86", "sm_89", "sm_120a", *(["sm_80"] if number == 20 else [])]
        return dict.fromkeys(small, SHARED_MEMORY) | {"sm_75": CP_ASYNC}
    if number <= 31:
        return {"sm_75": CP_ASYNC}
    return dict.fromkeys(set(ARCHITECTURES) - {"sm_90a", "sm_75"}, WGMMA) | {"sm_75": "sm_75"}


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_compiles_for_each_gpu_that_has_what_it_needs(path: Path) -> None:
    number = path.stem[:2]
    if number not in QUICK and "MATMUL_ARENA_ALL_ARCHITECTURES" not in os.environ:
        pytest.skip("set MATMUL_ARENA_ALL_ARCHITECTURES to compile all solutions")
    source = path.read_text(encoding="utf-8")
    for arch in ARCHITECTURES:
        answer = compile_source(Compile(source=source, arch=arch))
        lack = lacks(int(number)).get(arch)
        if lack is None:
            assert isinstance(answer, Compiled), (arch, answer)
            assert answer.kernel.facts.arch == arch
        else:
            assert isinstance(answer, Unsupported), (arch, answer)
            assert lack in answer.message and arch in answer.message


def test_an_intrinsic_of_newer_gpus_is_unsupported_and_not_an_error() -> None:
    parameters = "const float* A, const float* B, float* C, int M, int N, int K"
    body = "C[0] = __reduce_max_sync(~0u, M);"
    source = f"__global__ void matrix_multiplication_kernel({parameters}) {{ {body} }}"
    answer = compile_source(Compile(source=source, arch="sm_75"))
    assert isinstance(answer, Unsupported)
    assert answer.message == (
        'line 1: identifier "__reduce_max_sync" is undefined on sm_75; sm_80 and newer '
        "architectures have it"
    )


def test_other_errors_next_to_a_lacking_feature_are_errors() -> None:
    lack = "ptxas: Feature 'cp.async' requires .target sm_80 or higher"
    found = [Diagnostic(severity="error", message=each, line=3) for each in (lack, "other")]
    assert lacking(found[:1], "sm_75") == (
        "line 3: `cp.async` exists on sm_80 or newer; this is sm_75",
        "cp.async",
    )
    assert lacking(found, "sm_75") is None
