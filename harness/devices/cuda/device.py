"""The cuda device: a kernel on a real NVIDIA GPU."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial, singledispatchmethod
from importlib import import_module
from typing import Any

import cupy

from harness.devices.cuda import memory
from harness.devices.cuda.description import description
from harness.devices.cuda.errors import answer_or_fault
from harness.devices.cuda.first_launch import first_launch, host_memory
from harness.devices.cuda.loading import Loaded
from harness.devices.cuda.stopwatch import Stopwatch
from harness.devices.guards import ALIGNMENT, POISON, Layout, changed_inputs, same_bits
from harness.protocol.compiler import Kernel
from harness.protocol.device import Describe, Finished, Load, Ready, Run
from harness.protocol.report import DeviceInfo, HostMemory, Value
from harness.protocol.request import Done, Request
from harness.protocol.timing import (
    CloseBuffers,
    FirstLaunches,
    LaunchTime,
    MeasureFirstLaunch,
    MeasureHostMemory,
    OpenBuffers,
    SharedBuffers,
    Sustain,
    SustainedLaunches,
    TimeLaunch,
)
from problem.launcher import launch
from problem.signature import Arguments


class CudaDevice:
    """The device. Nothing touches the GPU before the first request."""

    def __init__(self) -> None:
        self._kernel: Kernel | None = None
        self._rooms: defaultdict[str, memory.Room] = defaultdict(memory.Room)
        self._loaded: Loaded | None = None
        self._timed: _Timed | None = None
        self._baselines: dict[str, Callable[..., None]] = {}

    def ask(self, request: Request[Any]) -> Value:
        return answer_or_fault(self.answer, request)

    @singledispatchmethod
    def answer(self, request: Request[Any]) -> Value:
        raise TypeError(f"the cuda device does not answer {type(request).__name__}")

    @answer.register
    def describe(self, request: Describe) -> DeviceInfo:
        return description(request.on_gpu)

    @answer.register
    def load(self, request: Load) -> Ready:
        assert isinstance(request.kernel, Kernel), "a GPU needs machine code"
        self._loaded = Loaded(request.kernel)
        self._kernel = request.kernel
        return Ready()

    @answer.register
    def run(self, request: Run) -> Finished:
        given, arguments = request.inputs, request.inputs.arguments
        assert self._loaded is not None and given.blocks is None
        layouts = [Layout.draw(each.rows, each.columns, ALIGNMENT) for each in arguments.buffers]
        guarded = [
            memory.Guarded(buffer, layout, self._rooms[buffer.name])
            for buffer, layout in zip(arguments.buffers, layouts, strict=True)
        ]
        *inputs, output = (each.matrix for each in guarded)
        for number, values in enumerate(given.matrices):
            equal = [n for n in range(number) if same_bits(values, given.matrices[n])]
            if equal:  # a program that multiplies a matrix by itself gives one address twice
                inputs[number] = inputs[equal[0]]
            else:
                inputs[number].set(values)
        memory.set_words(output, POISON)
        self._loaded.reset_variables()
        started = time.perf_counter()
        self._launch(arguments, *inputs, output)
        cupy.cuda.runtime.deviceSynchronize()
        seconds = time.perf_counter() - started
        return Finished(
            seconds=seconds,
            output=output.get(),
            changed_inputs=changed_inputs((matrix.get() for matrix in inputs), given),
            wrote_outside=tuple(place for each in guarded for place in each.overwritten()),
        )

    @answer.register
    def first_launch(self, request: MeasureFirstLaunch) -> FirstLaunches:
        return first_launch(request)

    @answer.register
    def host_memory(self, request: MeasureHostMemory) -> HostMemory:
        return host_memory(request)

    @answer.register
    def open_buffers(self, request: OpenBuffers) -> Done:
        if request.baseline is not None:
            self._timed = _Timed(request.buffers, self._baseline(request.baseline))
        else:
            assert self._loaded is not None
            reset = self._loaded.reset_variables
            compute = partial(self._launch, request.buffers.arguments)
            self._timed = _Timed(request.buffers, compute, reset)
        return Done()

    @answer.register
    def close_buffers(self, request: CloseBuffers) -> Done:
        if self._timed is not None:
            self._timed.opened.close()
        self._timed = None
        return Done()

    @answer.register
    def time_launch(self, request: TimeLaunch) -> LaunchTime:
        assert self._timed is not None, "open_buffers first"
        return self._timed.time()

    @answer.register
    def sustain(self, request: Sustain) -> SustainedLaunches:
        assert self._timed is not None, "open_buffers first"
        return self._timed.sustain(request.duration)

    def _baseline(self, on_gpu: str) -> Callable[..., None]:
        if on_gpu not in self._baselines:
            self._baselines[on_gpu] = import_module(on_gpu).baseline()
        return self._baselines[on_gpu]

    def _launch(self, arguments: Arguments, *buffers: Any) -> None:
        assert self._kernel is not None and self._loaded is not None
        launch(self._loaded.function, buffers, arguments, self._kernel.launch)


class _Timed:
    """The checker's buffers, and the kernel or baseline that is timed on them.

    prepare: is called before each launch, outside the time.
    """

    def __init__(
        self,
        buffers: SharedBuffers,
        compute: Callable[..., None],
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self.opened = memory.Opened(buffers)
        self._prepare = prepare
        self._launch = partial(compute, *self.opened.matrices)
        self._prepare()
        self._launch()
        cupy.cuda.runtime.deviceSynchronize()
        self._stopwatch = Stopwatch()

    def time(self) -> LaunchTime:
        self._prepare()
        return self._stopwatch.time(self._launch)

    def sustain(self, seconds: float) -> SustainedLaunches:
        return self._stopwatch.sustain(self._launch, self._prepare, seconds)
