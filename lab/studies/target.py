"""The program that measures a study: our own kernels, in launches that the judge would not make.

`python -m lab.studies.target JOB.json RESULTS.json`
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from harness.devices.cuda import memory
from harness.devices.cuda.loading import Loaded
from harness.protocol.files import write_whole
from lab.studies.job import Copies, ErrorAt, StudyJob, StudyResults, Time, Timed
from problem.cases import Shape
from problem.gpu import Sgemm, half_precision

_SECONDS, _MIN_LAUNCHES, _MAX_LAUNCHES = 0.1, 5, 40
"""Time and launches that one point takes, at least and at most."""

_ROWS = 512
"""Of C where errors are measured, and its columns."""

_COPIES = 8
_TO_DEVICE = 1


def main(job_path: Path, results_path: Path) -> None:
    job = StudyJob.model_validate_json(job_path.read_bytes())
    functions = {name: Loaded(kernel).function for name, kernel in job.kernels.items()}
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    results = StudyResults(
        gpu=name,
        date=datetime.now(UTC).date().isoformat(),
        times=tuple(_times(job, functions)),
        errors=tuple(_errors(job, functions)),
        copies=tuple(_copies(job)),
    )
    write_whole(results_path, results.model_dump_json(indent=1) + "\n")


def _launcher(
    job: StudyJob, functions: dict[str, Any], timed: Timed
) -> Callable[[Any, Any, Any], None]:
    if timed.kernel is None:
        return Sgemm()
    function, kernel, shape = functions[timed.kernel], job.kernels[timed.kernel], timed.shape
    grid = (-(-shape.K // timed.tile[1]), -(-shape.M // timed.tile[0]), 1)
    sizes = (np.int32(shape.M), np.int32(shape.N), np.int32(shape.K))

    def launch(A: Any, B: Any, C: Any) -> None:
        arguments = (A, B, C, *sizes)
        function(grid, timed.block, arguments, shared_mem=kernel.launch.shared_memory)

    return launch


def _matrices(shape: Shape) -> tuple[Any, Any, Any]:
    random = cupy.random.default_rng(0)
    return (
        random.random((shape.M, shape.N), dtype=cupy.float32) * 2 - 1,
        random.random((shape.N, shape.K), dtype=cupy.float32) * 2 - 1,
        cupy.zeros((shape.M, shape.K), cupy.float32),
    )


def _times(job: StudyJob, functions: dict[str, Any]) -> Iterator[Time]:
    """Measure by size, so that matrices are drawn once; the GPU is warm before the first."""
    warm = _matrices(Shape(4096, 4096, 4096))
    until = time.monotonic() + 1
    while time.monotonic() < until:
        Sgemm()(*warm)
        cupy.cuda.runtime.deviceSynchronize()
    held: tuple[Shape, tuple[Any, Any, Any]] | None = None
    for timed in sorted(job.timed, key=lambda each: each.shape.flop):
        if held is None or held[0] != timed.shape:
            held = None
            held = (timed.shape, _matrices(timed.shape))
        found = _launch_times(_launcher(job, functions, timed), held[1])
        yield Time(
            series=timed.series,
            kernel=timed.kernel,
            block=timed.block,
            shape=timed.shape,
            ms=statistics.median(found),
            low_ms=min(found),
            high_ms=max(found),
            launches=len(found),
        )


def _launch_times(launch: Callable[..., None], matrices: tuple[Any, Any, Any]) -> list[float]:
    """Single launches between two events, after one that does not count."""
    launch(*matrices)
    cupy.cuda.runtime.deviceSynchronize()
    found: list[float] = []
    started = time.monotonic()
    while len(found) < _MIN_LAUNCHES or (
        len(found) < _MAX_LAUNCHES and time.monotonic() - started < _SECONDS
    ):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        launch(*matrices)
        after.record()
        after.synchronize()
        found.append(float(cupy.cuda.get_elapsed_time(before, after)))
    return found


def _errors(job: StudyJob, functions: dict[str, Any]) -> Iterator[ErrorAt]:
    arithmetics: dict[str, Callable[[Any, Any, Any], None]] = {
        "cuBLAS FP32": Sgemm(),
        "cuBLAS TF32": Sgemm("tf32"),
        "FP16 inputs": half_precision,
    }
    for N in job.errors_at:
        shape = Shape(_ROWS, N, _ROWS)
        A, B, C = _matrices(shape)
        launches = dict(arithmetics)
        for name in job.errors_of:
            line = job.kernels[name].launch
            tile = (line.tile_rows, line.tile_columns)
            timed = Timed(series="", kernel=name, tile=tile, shape=shape)
            launches[name] = _launcher(job, functions, timed)
        exact = A.astype(cupy.float64) @ B.astype(cupy.float64)
        for name, launch in launches.items():
            C.fill(np.nan)
            launch(A, B, C)
            yield ErrorAt(arithmetic=name, N=N, error=_worst_block(A, B, C, exact))


def _worst_block(A: Any, B: Any, C: Any, exact: Any) -> float:
    """The rule of problem/reference.py, on the GPU."""
    sizes = cupy.linalg.norm(A, axis=1)[:, None] * cupy.linalg.norm(B, axis=0)[None, :]
    sizes = sizes.astype(cupy.float64) / np.sqrt(A.shape[1])

    def norms(matrix: Any) -> Any:
        blocks = matrix.reshape(_ROWS // 16, 16, _ROWS // 16, 16)
        return cupy.sqrt((blocks**2).sum(axis=(1, 3)))

    return float((norms(C - exact) / cupy.maximum(norms(exact), norms(sizes))).max())


def _copies(job: StudyJob) -> Iterator[Copies]:
    """A new buffer of each size and kind, filled, then copied several times."""
    for size in job.copied:
        target = memory.allocate(size)
        for pinned in (False, True):
            started = time.perf_counter()
            host = _host_memory(size, pinned)
            allocated = time.perf_counter() - started
            host.fill(1)
            found = [_copy_ms(target.ptr, host) for _ in range(_COPIES)]
            yield Copies(
                kind="pinned" if pinned else "pageable",
                bytes=size,
                allocate_ms=allocated * 1e3,
                first_copy_ms=found[0],
                copy_ms=statistics.median(found[1:]),
            )


def _host_memory(size: int, pinned: bool) -> Any:
    if not pinned:
        return np.empty(size, np.uint8)
    held = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
    return np.frombuffer(held, np.uint8, size)


def _copy_ms(target: int, host: Any) -> float:
    cupy.cuda.runtime.deviceSynchronize()
    started = time.perf_counter()
    cupy.cuda.runtime.memcpy(target, host.ctypes.data, host.nbytes, _TO_DEVICE)
    cupy.cuda.runtime.deviceSynchronize()
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
