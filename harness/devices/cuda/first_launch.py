"""Measure the costs that a program pays once, in a process that has not used the GPU."""

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
from problem.launcher import solve
from problem.reference import repeated

T = TypeVar("T")


def first_launch(request: MeasureFirstLaunch) -> FirstLaunches:
    """Measure context, module load, first allocation, first and second launch."""
    shape, kernel = request.shape, request.kernel
    context_ms, _ = _timed(lambda: cupy.cuda.runtime.free(0))
    module_load_ms, loaded = _timed(lambda: Loaded(kernel))
    allocation_ms, (A, B, *products) = _timed(
        lambda: (
            memory.matrix(shape.M, shape.N),
            memory.matrix(shape.N, shape.K),
            memory.matrix(shape.M, shape.K),
            memory.matrix(shape.M, shape.K),
        )
    )
    A.set(repeated(request.rows, shape.M, 0))
    B.set(repeated(request.columns, shape.K, 1))
    for C in products:
        memory.set_words(C, POISON)
    cupy.cuda.runtime.deviceSynchronize()

    def once(C: Any) -> None:
        solve(
            loaded.function,
            A,
            B,
            C,
            shape.M,
            shape.N,
            shape.K,
            kernel.launch,
            cupy.cuda.runtime.deviceSynchronize,
        )

    def timed(C: Any) -> float:
        loaded.reset_variables()
        cupy.cuda.runtime.deviceSynchronize()
        return _timed(partial(once, C))[0]

    first_ms, second_ms = map(timed, products)
    return FirstLaunches(
        times=FirstLaunch(
            context_ms=context_ms,
            compile_ms=request.compile_ms,
            module_load_ms=module_load_ms,
            first_allocation_ms=allocation_ms,
            first_launch_ms=first_ms,
            second_launch_ms=second_ms,
        ),
        C=products[request.fetch - 1].get(),
    )


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    result = work()
    return (time.perf_counter() - started) * 1e3, result
