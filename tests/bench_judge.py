"""Benchmarks of the judge's own work, and of the solutions by the GPU's clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.protocol.compiler import Compiled
from problem.cases import CASES, RANKED, Case, Shape
from problem.launcher import launch
from problem.problem import MATRIX_MULTIPLICATION
from problem.reference import compare, reference
from tests.compile_worker import Compiling

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = sorted((ROOT / "solutions").glob("*.cu"))
SHAPE = Shape(1024, 1024, 1024)


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_compilation(benchmark: Any, compiling: Compiling, path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    benchmark.group = "compilation"
    benchmark.pedantic(compiling, (source,), rounds=3, warmup_rounds=1)


def test_float64_product(benchmark: Any) -> None:
    benchmark.group = "reference, 1024³"
    benchmark(reference, *Case(SHAPE).draw(0))


def test_error_per_block(benchmark: Any) -> None:
    A, B = Case(SHAPE).draw(0)
    benchmark.group = "reference, 1024³"
    benchmark(compare, A, B, A @ B)


def test_drawing_the_inputs_of_all_cases(benchmark: Any) -> None:
    benchmark(lambda: [case.draw(0) for case in CASES])


def gpu_seconds() -> float:
    """A clock for pytest-benchmark: seconds by the GPU's own events."""
    import cupy

    if not hasattr(gpu_seconds, "start"):
        start = cupy.cuda.Event()
        start.record()
        start.synchronize()
        gpu_seconds.start = start  # type: ignore[attr-defined]
    now = cupy.cuda.Event()
    now.record()
    now.synchronize()
    elapsed: float = cupy.cuda.get_elapsed_time(gpu_seconds.start, now)  # type: ignore[attr-defined]
    return elapsed / 1e3


@pytest.mark.gpu
@pytest.mark.benchmark(timer=gpu_seconds, group="ranked size")
@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solution(benchmark: Any, compiling: Compiling, path: Path) -> None:
    from harness.devices.cuda import memory
    from harness.devices.cuda.loading import Loaded
    from problem import gpu

    compiled = compiling(path.read_text(encoding="utf-8"))
    assert isinstance(compiled, Compiled)
    kernel = compiled.kernel
    function = Loaded(kernel).function
    arguments = MATRIX_MULTIPLICATION.arguments(RANKED.shape)
    buffers = memory.matrices(arguments.buffers)
    gpu.Drawn(RANKED, 1, buffers)
    given = (function, buffers, arguments, kernel.launch)
    benchmark.pedantic(launch, given, rounds=10, warmup_rounds=3)
