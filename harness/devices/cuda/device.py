"""The cuda device: a kernel on a real NVIDIA GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property, partial, singledispatchmethod
from typing import Any, Literal

import cupy
import numpy as np

from harness.compiling.occupancy import multiprocessor
from harness.devices.available import arch_named
from harness.devices.cuda import baseline, memory
from harness.devices.cuda.clocks import Clocks
from harness.devices.cuda.errors import faults_told
from harness.devices.cuda.first_launch import first_launch
from harness.devices.cuda.host_memory import host_memory
from harness.devices.cuda.loading import Loaded
from harness.devices.cuda.stopwatch import Stopwatch
from harness.devices.guards import ALIGNMENT, Layout
from harness.protocol.compiler import Kernel
from harness.protocol.device import (
    Count,
    Describe,
    Finished,
    Load,
    Ready,
    Run,
    Uncounted,
)
from harness.protocol.profile import NoProfile, Profile, ReadCounters
from harness.protocol.report import DeviceInfo, DeviceKind, HostMemory, Value
from harness.protocol.request import Done, Request
from harness.protocol.timing import (
    Arithmetic,
    Attach,
    Detach,
    FirstLaunches,
    LaunchTime,
    MeasureFirstLaunch,
    MeasureHostMemory,
    RunBaseline,
    SharedMatrices,
    Sustain,
    SustainedLaunches,
    TimeLaunch,
)
from problem.cases import Matrix
from problem.launcher import launch, solve


class CudaDevice:
    """A ScoringDevice. Nothing touches the GPU before the first request."""

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._rooms = memory.Room(), memory.Room(), memory.Room()
        self._loaded: Loaded | None = None
        self._attached: _Attached | None = None

    def ask(self, request: Request[Any]) -> Value:
        return faults_told(self.answer, request)

    @singledispatchmethod
    def answer(self, request: Request[Any]) -> Value:
        raise TypeError(f"the cuda device does not answer {type(request).__name__}")

    @answer.register
    def describe(self, request: Describe) -> DeviceInfo:
        return _info()

    @answer.register
    def load(self, request: Load) -> Ready:
        assert isinstance(request.kernel, Kernel), "a GPU needs machine code"
        self._loaded = Loaded(request.kernel)
        self._kernel = request.kernel
        return Ready()

    @answer.register
    def run(self, request: Run) -> Finished:
        assert self._kernel is not None and self._loaded is not None and request.blocks is None
        shape = request.shape
        M, N, K = shape.M, shape.N, shape.K
        of_A, of_B, of_C = (Layout.draw(*size, ALIGNMENT) for size in ((M, N), (N, K), (M, K)))
        for_A, for_B, for_C = self._rooms
        on_A = memory.Guarded.holding(request.A, of_A, for_A)
        on_B = memory.Guarded.holding(request.B, of_B, for_B)
        on_C = memory.Guarded.poisoned(shape.M, shape.K, of_C, for_C)
        self._loaded.reset_variables()
        started = time.perf_counter()
        solve(
            self._loaded.function,
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
        changed: list[Literal["A", "B"]] = []
        if not _same_bits(on_A.matrix.get(), request.A):
            changed.append("A")
        if not _same_bits(on_B.matrix.get(), request.B):
            changed.append("B")
        return Finished(
            seconds=seconds,
            C=on_C.matrix.get(),
            changed_inputs=tuple(changed),
            wrote_outside=tuple(
                f"{side} {name}"
                for name, guarded in (("A", on_A), ("B", on_B), ("C", on_C))
                for side in guarded.overwritten()
            ),
        )

    @answer.register
    def count(self, request: Count) -> Uncounted:
        return Uncounted()

    @answer.register
    def read_counters(self, request: ReadCounters) -> Profile | NoProfile:
        assert self._kernel is not None
        from harness.devices.cuda.profiler import profile  # ncu-report, which only this needs

        found = profile(self._kernel, (request.shape,), request.seconds)
        return found if isinstance(found, NoProfile) else found[0]

    @answer.register
    def first_launch(self, request: MeasureFirstLaunch) -> FirstLaunches:
        return first_launch(request)

    @answer.register
    def host_memory(self, request: MeasureHostMemory) -> HostMemory:
        return host_memory(request)

    @answer.register
    def attach(self, request: Attach) -> Done:
        if request.baseline:
            self._attached = _Attached(request.matrices, self._sgemm)
        else:
            assert self._loaded is not None
            reset = self._loaded.reset_variables
            self._attached = _Attached(request.matrices, self._launch, reset)
        return Done()

    @answer.register
    def detach(self, request: Detach) -> Done:
        if self._attached is not None:
            self._attached.opened.close()
        self._attached = None
        return Done()

    @answer.register
    def time_launch(self, request: TimeLaunch) -> LaunchTime:
        assert self._attached is not None, "attach first"
        return self._attached.time()

    @answer.register
    def sustain(self, request: Sustain) -> SustainedLaunches:
        assert self._attached is not None, "attach first"
        return self._attached.sustain(request.duration)

    @answer.register
    def run_baseline(self, request: RunBaseline) -> Finished:
        on_A, on_B = cupy.asarray(request.A), cupy.asarray(request.B)
        on_C = memory.matrix(on_A.shape[0], on_B.shape[1])
        started = time.perf_counter()
        if request.arithmetic is Arithmetic.FP16:
            baseline.half_precision(on_A, on_B, on_C)
        else:
            baseline.Sgemm(request.arithmetic)(on_A, on_B, on_C)
        cupy.cuda.runtime.deviceSynchronize()
        return Finished(seconds=time.perf_counter() - started, C=on_C.get())

    @cached_property
    def _sgemm(self) -> baseline.Sgemm:
        return baseline.Sgemm()

    def _launch(self, A: Any, B: Any, C: Any) -> None:
        assert self._kernel is not None and self._loaded is not None
        (M, N), K = A.shape, B.shape[1]
        launch(self._loaded.function, A, B, C, M, N, K, self._kernel.launch)


class _Attached:
    """The checker's matrices, and the kernel or baseline that is timed on them.

    prepare: is called before each launch, outside the time.
    """

    def __init__(
        self,
        matrices: SharedMatrices,
        multiply: Callable[..., None],
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self.opened = memory.Opened(matrices)
        self._prepare = prepare
        self._launch = partial(multiply, *self.opened.matrices)
        self._prepare()
        self._launch()
        cupy.cuda.runtime.deviceSynchronize()
        self._stopwatch = Stopwatch()

    def time(self) -> LaunchTime:
        self._prepare()
        return self._stopwatch.time(self._launch)

    def sustain(self, seconds: float) -> SustainedLaunches:
        return self._stopwatch.sustain(self._launch, self._prepare, seconds)


def _info() -> DeviceInfo:
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    arch = arch_named(properties["major"], properties["minor"])
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
        notes=clocks.notes,
    )


def _same_bits(found: Matrix, expected: Matrix) -> bool:
    return bool(np.array_equal(found.view(np.uint32), expected.view(np.uint32)))


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
