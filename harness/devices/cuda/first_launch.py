"""Measure the costs of a program outside its timed launches: first launch, copies of matrices."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import cupy
import numpy as np

from harness.devices.cuda import memory
from harness.devices.cuda.loading import Loaded
from harness.devices.guards import POISON
from harness.protocol.report import FirstLaunch, HostMemory, HostMemoryKind
from harness.protocol.timing import FirstLaunches, MeasureFirstLaunch, MeasureHostMemory
from problem.inputs import Matrix
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


_COPIES = 5
"""The result is the median of this many copies."""

_TO_DEVICE, _TO_HOST = 1, 2


def host_memory(request: MeasureHostMemory) -> HostMemory:
    """Allocate all buffers, fill them, copy the inputs to the GPU and the output back."""
    sizes = [(buffer.rows, buffer.columns) for buffer in request.arguments.buffers]
    on_device = memory.matrices(request.arguments.buffers)
    on_host: list[Matrix] = []
    kept: list[Any] = []

    def allocate() -> None:
        for rows, columns in sizes:
            size = rows * columns * 4
            if request.memory is HostMemoryKind.PINNED:
                pinned = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
                kept.append(pinned)
                flat = np.frombuffer(pinned, np.float32, rows * columns)
                on_host.append(flat.reshape(rows, columns))
            else:
                on_host.append(np.empty((rows, columns), np.float32))

    def fill() -> None:
        for matrix in on_host:
            matrix.fill(1.0)

    def to_device() -> None:
        for source, target in zip(on_host[:-1], on_device[:-1], strict=True):
            cupy.cuda.runtime.memcpy(target.data.ptr, source.ctypes.data, source.nbytes, _TO_DEVICE)

    def to_host() -> None:
        source, target = on_device[-1], on_host[-1]
        cupy.cuda.runtime.memcpy(target.ctypes.data, source.data.ptr, target.nbytes, _TO_HOST)

    allocate_ms, fill_ms = _ms(allocate), _ms(fill)
    to_device_ms = statistics.median(_ms(to_device) for _ in range(_COPIES))
    to_host_ms = statistics.median(_ms(to_host) for _ in range(_COPIES))
    return HostMemory(
        kind=request.memory,
        allocate_ms=allocate_ms,
        fill_ms=fill_ms,
        to_device_ms=to_device_ms,
        to_host_ms=to_host_ms,
        to_device_gb_per_s=sum(each.nbytes for each in on_host[:-1]) / to_device_ms / 1e6,
        to_host_gb_per_s=on_host[-1].nbytes / to_host_ms / 1e6,
    )


def _ms(work: Callable[[], None]) -> float:
    """Return the milliseconds of work that the GPU has finished at the end."""

    def finished() -> None:
        work()
        cupy.cuda.runtime.deviceSynchronize()

    cupy.cuda.runtime.deviceSynchronize()
    return _timed(finished)[0]
