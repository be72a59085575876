"""Compiling for other GPUs works, or names the feature that they lack."""

from pathlib import Path

import pytest

from harness.compiling.compiler import compile_source
from harness.compiling.diagnostics import lacking
from harness.protocol.compiler import ARCHITECTURES, DEFAULT_ARCH, Compile, Compiled
from harness.protocol.report import Diagnostic, Unsupported
from tests.sources import BROKEN

SOLUTIONS = sorted((Path(__file__).parents[2] / "solutions").glob("*.cu"))
CP_ASYNC = "exists on sm_80 or newer; this is sm_75"
WGMMA = "`wgmma.fence` exists on sm_90a only"
SHARED_MEMORY = "bytes of shared memory per block"
SHARED_BYTES = {"sm_80": 166_912, "sm_86": 101_376, "sm_89": 101_376, "sm_120a": 101_376}
"""The limits of shared memory that are too low for some solutions."""


def lacks(number: int, arch: str) -> str | None:
    """Return what an architecture lacks for a solution."""
    wgmma = number >= 32
    if arch == "sm_75" and number >= 13:
        return "sm_75" if wgmma else CP_ASYNC
    if wgmma and arch != DEFAULT_ARCH:
        return WGMMA
    small = {20: 166_912, 21: 101_376, 30: 101_376}.get(number, 0)
    return SHARED_MEMORY if SHARED_BYTES.get(arch, 1 << 20) <= small else None


OTHERS = [arch for arch in ARCHITECTURES if arch != DEFAULT_ARCH]
"""The default architecture has its own tests, in test_solutions.py."""


@pytest.mark.architectures
@pytest.mark.parametrize("arch", OTHERS)
@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solutions_compile_for_every_gpu_that_can_run_them(path: Path, arch: str) -> None:
    answer = compile_source(Compile(source=path.read_text(encoding="utf-8"), arch=arch))
    lack = lacks(int(path.stem[:2]), arch)
    if lack is None:
        assert isinstance(answer, Compiled), answer
        assert answer.kernel.facts.arch == arch
    else:
        assert isinstance(answer, Unsupported), answer
        assert lack in answer.message and arch in answer.message


def test_an_intrinsic_of_newer_gpus_is_unsupported() -> None:
    source = BROKEN.replace("int x = ;", "C[0] = __reduce_max_sync(~0u, M);")
    answer = compile_source(Compile(source=source, arch="sm_75"))
    assert isinstance(answer, Unsupported)
    assert answer.message == (
        'line 1: identifier "__reduce_max_sync" is undefined on sm_75; newer architectures have it'
    )


def test_other_errors_next_to_a_lacking_feature_are_errors() -> None:
    lack = "ptxas: Feature 'cp.async' requires .target sm_80 or higher"
    rarer = "ptxas: Instruction 'wgmma.fence' not supported on .target 'sm_75'"
    found = [Diagnostic(severity="error", message=each, line=3) for each in (lack, rarer, "other")]
    assert lacking(found[:2], "sm_75") == (
        "line 3: `wgmma.fence` exists on sm_90a only; this is sm_75",
        "wgmma.fence",
    )
    assert lacking(found[:1], "sm_75") == (
        "line 3: `cp.async` exists on sm_80 or newer; this is sm_75",
        "cp.async",
    )
    assert lacking(found, "sm_75") is None
