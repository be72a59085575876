"""Measure the costs of a program that has not used the GPU before."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import cupy

from harness.devices.cuda import memory
from harness.devices.cuda.loading import Loaded
from harness.devices.guards import POISON
from harness.protocol.report import FirstLaunch
from harness.protocol.timing import FirstLaunches, MeasureFirstLaunch
from problem.launcher import launch
from problem.reference import repeated

T = TypeVar("T")


def first_launch(request: MeasureFirstLaunch) -> FirstLaunches:
    """Measure context, module load, first allocation, first and second launch."""
    arguments, kernel = request.arguments, request.kernel
    context_ms, _ = _timed(lambda: cupy.cuda.runtime.free(0))
    module_load_ms, loaded = _timed(lambda: Loaded(kernel))
    allocation_ms, (*inputs, first, second) = _timed(
        lambda: memory.matrices((*arguments.buffers, arguments.output))
    )
    for matrix, part in zip(inputs, request.parts, strict=True):
        matrix.set(repeated(part, *matrix.shape))
    for output in (first, second):
        memory.set_words(output, POISON)
    cupy.cuda.runtime.deviceSynchronize()

    def once(output: Any) -> None:
        launch(loaded.function, (*inputs, output), arguments, kernel.launch)
        cupy.cuda.runtime.deviceSynchronize()

    def timed(output: Any) -> float:
        loaded.reset_variables()
        cupy.cuda.runtime.deviceSynchronize()
        return _timed(partial(once, output))[0]

    first_ms, second_ms = timed(first), timed(second)
    return FirstLaunches(
        times=FirstLaunch(
            context_ms=context_ms,
            compile_ms=request.compile_ms,
            module_load_ms=module_load_ms,
            first_allocation_ms=allocation_ms,
            first_launch_ms=first_ms,
            second_launch_ms=second_ms,
        ),
        output=(first, second)[request.fetch - 1].get(),
    )


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    result = work()
    return (time.perf_counter() - started) * 1e3, result
