"""A fake GPU that times: kernels and a baseline whose launches take known times, and a checker."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.protocol import timing as protocol
from harness.protocol.device import Load, Ready
from harness.protocol.report import FirstLaunch, HostMemory, HostMemoryKind
from harness.protocol.request import Done, Fault
from problem.cases import UNIFORM, Case, Shape
from problem.grades import Errors
from tests.judge.stages.fakes import launch_time, right

RIGHT = protocol.Checked(error=0.3)
FIRST_TIMES = FirstLaunch(**dict.fromkeys(FirstLaunch.model_fields, 3.0))


def first_launches(request: protocol.MeasureFirstLaunch) -> protocol.FirstLaunches:
    """Return the product of inputs that repeat their parts."""
    C, shape = right(*request.parts), request.arguments.shape
    repeats = (shape.M // C.shape[0], shape.K // C.shape[1])
    return protocol.FirstLaunches(times=FIRST_TIMES, output=np.tile(C, repeats))


def host_memory(kind: HostMemoryKind, once: float = 1.0, each: float = 1.0) -> HostMemory:
    """Return times in milliseconds. once: of what is done once. each: of what is repeated."""
    names = [name for name in HostMemory.model_fields if name != "kind"]
    given = {"allocate_ms": once, "fill_ms": 2 * once, "to_device_ms": each, "to_host_ms": 3 * each}
    return HostMemory(kind=kind, **dict.fromkeys(names, 1.0) | given)


@dataclass
class TimedProcess:
    """A process whose launches take known times. The baseline is one, too.

    answer: returns what its n-th launch is answered with.
    check: returns the result of checking its n-th launch, on inputs of a kind.
    """

    timing: FakeTiming
    ms: float
    answer: Callable[[int], protocol.LaunchTime | Fault]
    check: Callable[[str, int], protocol.Checked | Fault] = lambda inputs, launch: RIGHT
    ready: Any = field(default_factory=Ready)
    first: Callable[[protocol.MeasureFirstLaunch], Any] = first_launches
    memory: Callable[[HostMemoryKind], Any] = host_memory
    asked: list[Any] = field(default_factory=list)
    launches: int = 0
    opened: bool = False

    @property
    def closed(self) -> int:
        return sum(isinstance(request, protocol.CloseBuffers) for request in self.asked)

    def ask(self, request: Any) -> Any:
        assert not self.timing.interrupted, "a worker at a launch answers nothing else"
        self.asked.append(request)
        match request:
            case Load():
                return self.ready
            case protocol.OpenBuffers():
                self.opened = True
                self.timing.last = self
                return Done()
            case protocol.CloseBuffers():
                self.opened = False
                return Done()
            case protocol.TimeLaunch():
                assert self.opened
                self.launches += 1
                self.timing.last = self
                self.timing.launched.append(self)
                timed = self.answer(self.launches)
                self.opened = not isinstance(timed, Fault)  # a process ends with its fault
                return timed
            case protocol.Sustain():
                assert self.timing.last is None, "its inputs are new"
                self.timing.last = self
                seconds, joules = self.ms / 100, self.ms
                return protocol.SustainedLaunches(launches=10, seconds=seconds, joules=joules)
            case protocol.MeasureFirstLaunch():
                return self.first(request)
            case protocol.MeasureHostMemory():
                return self.memory(request.memory)
        raise AssertionError(request)


@dataclass
class FakeTiming:
    """The baseline, the kernels and the checker, and a record of what they were asked.

    noise: the relative standard deviation of a launch's time.
    drift: the factor on the time of the n-th launch, the same for all kernels.
    """

    times: Sequence[float] = (10.0,)
    baseline_ms: float = 8.0
    noise: float = 0.0
    drift: Callable[[int], float] = lambda launch: 1.0
    draws: list[str] = field(default_factory=list)
    """The kind of each input that was drawn."""
    launched: list[TimedProcess] = field(default_factory=list)
    """The kernel of each launch."""
    last: TimedProcess | None = None
    fetched_after: list[int] = field(default_factory=list)
    """The launches of the baseline before each output that was fetched."""
    errors_of: list[tuple[int, str, int]] = field(default_factory=list)
    """Seed, kind and number of the inputs of each launch whose errors were measured."""
    interrupted: bool = False
    fetched_off: float = 0.0
    """The error of the last element of each output that is fetched."""

    def __post_init__(self) -> None:
        self.generator = random.Random(1)
        self.baseline, *self.kernels = (self._process(ms) for ms in (self.baseline_ms, *self.times))

    @property
    def kernel(self) -> TimedProcess:
        (kernel,) = self.kernels
        return kernel

    @property
    def workers(self) -> list[protocol.TimingWorkers]:
        return [protocol.TimingWorkers(each, self.baseline, self) for each in self.kernels]

    def _process(self, ms: float) -> TimedProcess:
        def answer(_: int) -> protocol.LaunchTime:
            noise = math.exp(self.generator.gauss(0, self.noise))
            return launch_time(kernel.ms * self.drift(len(self.launched)) * noise)

        kernel = TimedProcess(self, ms, answer)
        return kernel

    def ask(self, request: Any) -> Any:
        """Answer as the checker."""
        match request:
            case protocol.ShareBuffers():
                self.shape: Shape = request.arguments.shape
                return protocol.SharedBuffers(arguments=request.arguments, handles=(), offsets=())
            case protocol.DrawInputs():
                self.draws.append(request.inputs)
                self.last = None
                return Done()
            case protocol.CheckLaunch():
                return self.last.check([UNIFORM, *self.draws][-1], self.last.launches)
            case protocol.MeasureErrors():
                size = 1e-6 if self.last is self.baseline else 2e-6
                self.errors_of.append((request.seed, self.draws[-1], len(self.draws)))
                return protocol.MeasuredErrors(errors=Errors(size, size, size))
            case protocol.FetchLaunch():
                assert self.last is not self.baseline
                self.fetched_after.append(self.baseline.launches)
                C = right(*Case(self.shape).draw(1))
                C[-1, -1] += self.fetched_off
                return protocol.Fetched(seed=1, output=C)
        raise AssertionError(request)
