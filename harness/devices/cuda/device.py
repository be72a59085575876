"""The cuda device: a kernel on a real NVIDIA GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import cupy
import numpy as np

from harness.compiling.kernel import Kernel
from harness.compiling.occupancy import multiprocessor
from harness.devices.cuda import baseline, memory, sanitizer
from harness.devices.cuda.clocks import Clocks
from harness.devices.cuda.errors import CudaError, fault
from harness.devices.cuda.first_launch import first_launch
from harness.devices.cuda.host_memory import host_memory
from harness.devices.cuda.loading import load_function
from harness.devices.cuda.stopwatch import Stopwatch
from harness.devices.device import (
    Arithmetic,
    Attach,
    Count,
    Detach,
    Done,
    Fault,
    Finished,
    LaunchTime,
    MeasureFirstLaunch,
    MeasureHostMemory,
    Ready,
    Refusal,
    Run,
    RunBaseline,
    Sanitize,
    Sanitized,
    TimeLaunch,
)
from harness.report import Counters, DeviceInfo, DeviceKind, FirstLaunch, HostMemory
from problem.cases import Matrix
from problem.launcher import launch, solve


class CudaDevice:
    """A Device that can score. Nothing touches the GPU before the first request."""

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._function: Any = None
        self._opened: memory.Opened | None = None
        self._timed: Callable[[], None]
        self._stopwatch: Stopwatch

    def info(self) -> DeviceInfo | Fault:
        try:
            return _info()
        except CudaError as error:
            return fault(error)

    def load(self, kernel: Kernel) -> Ready | Refusal | Fault:
        try:
            self._function = load_function(kernel)
        except CudaError as error:
            return fault(error)
        self._kernel = kernel
        return Ready()

    def run(self, request: Run, A: Matrix, B: Matrix) -> tuple[Finished, Matrix] | Fault:
        assert self._kernel is not None and request.blocks is None
        shape = request.shape
        try:
            on_A, on_B = memory.Guarded.holding(A), memory.Guarded.holding(B)
            on_C = memory.Guarded.poisoned(shape.M, shape.K)
            started = time.perf_counter()
            solve(
                self._function,
                on_A.matrix,
                on_B.matrix,
                on_C.matrix,
                shape.M,
                shape.N,
                shape.K,
                self._kernel.launch,
                cupy.cuda.runtime.deviceSynchronize,
            )
            seconds = time.perf_counter() - started
            C: Matrix = on_C.matrix.get()
            changed: list[Literal["A", "B"]] = []
            if not _same_bits(on_A.matrix.get(), A):
                changed.append("A")
            if not _same_bits(on_B.matrix.get(), B):
                changed.append("B")
            outside = [
                f"{side} {name}"
                for name, guarded in (("A", on_A), ("B", on_B), ("C", on_C))
                for side in guarded.overwritten()
            ]
        except CudaError as error:
            return fault(error)
        finished = Finished(
            seconds=seconds, changed_inputs=tuple(changed), wrote_outside=tuple(outside)
        )
        return finished, C

    def sanitize(self, request: Sanitize) -> Sanitized | Fault:
        assert self._kernel is not None
        return sanitizer.sanitize(self._kernel, request)

    def count(self, request: Count) -> Counters | Fault | None:
        return None

    def first_launch(self, request: MeasureFirstLaunch) -> FirstLaunch | Fault:
        try:
            return first_launch(request)
        except CudaError as error:
            return fault(error)

    def host_memory(self, request: MeasureHostMemory) -> HostMemory | Fault:
        try:
            return host_memory(request)
        except CudaError as error:
            return fault(error)

    def attach(self, request: Attach) -> Done | Fault:
        try:
            opened = self._opened = memory.Opened(request.matrices)
            multiply = baseline.Sgemm() if request.baseline else self._launch
            self._timed = partial(multiply, *opened.matrices)
            self._timed()
            cupy.cuda.runtime.deviceSynchronize()
            self._stopwatch = Stopwatch()
        except CudaError as error:
            return fault(error)
        return Done()

    def detach(self, request: Detach) -> Done | Fault:
        try:
            if self._opened is not None:
                self._opened.close()
        except CudaError as error:
            return fault(error)
        self._opened = None
        return Done()

    def time_launch(self, request: TimeLaunch) -> LaunchTime | Fault:
        assert self._opened is not None, "attach first"
        try:
            return self._stopwatch.time(self._timed)
        except CudaError as error:
            return fault(error)

    def run_baseline(
        self, request: RunBaseline, A: Matrix, B: Matrix
    ) -> tuple[Finished, Matrix] | Fault:
        try:
            on_A, on_B = cupy.asarray(A), cupy.asarray(B)
            on_C = memory.matrix(A.shape[0], B.shape[1])
            started = time.perf_counter()
            if request.arithmetic is Arithmetic.FP16:
                baseline.half_precision(on_A, on_B, on_C)
            else:
                baseline.Sgemm(request.arithmetic)(on_A, on_B, on_C)
            cupy.cuda.runtime.deviceSynchronize()
            return Finished(seconds=time.perf_counter() - started), on_C.get()
        except CudaError as error:
            return fault(error)

    def _launch(self, A: Any, B: Any, C: Any) -> None:
        assert self._kernel is not None
        (M, N), K = A.shape, B.shape[1]
        launch(self._function, A, B, C, M, N, K, self._kernel.launch)


def _info() -> DeviceInfo:
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    number = f"{properties['major']}{properties['minor']}"
    # Hopper and later have instructions that only the architecture-specific target gives.
    arch = f"sm_{number}a" if int(number) >= 90 else f"sm_{number}"
    clocks = Clocks()
    clock_mhz = clocks.max_mhz
    lanes = multiprocessor(arch).fp32_lanes
    count = properties["multiProcessorCount"]
    return DeviceInfo(
        kind=DeviceKind.CUDA,
        name=properties["name"].decode(),
        arch=arch,
        uuid=clocks.uuid,
        driver=_cuda_version(cupy.cuda.runtime.driverGetVersion()),
        cuda_runtime=_cuda_version(cupy.cuda.runtime.runtimeGetVersion()),
        cublas=baseline.version(),
        multiprocessors=count,
        max_clock_mhz=clock_mhz,
        memory_bytes=properties["totalGlobalMem"],
        memory_gb_per_s=clocks.memory_gb_per_s,
        l2_bytes=properties["l2CacheSize"],
        fp32_peak_tflops=count * lanes * 2 * clock_mhz * 1e6 / 1e12,
    )


def _same_bits(found: Matrix, expected: Matrix) -> bool:
    return bool(np.array_equal(found.view(np.uint32), expected.view(np.uint32)))


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
