"""Requests to the three processes of a measurement: kernel, baseline and checker."""

from dataclasses import dataclass
from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from harness.protocol.compiler import Kernel
from harness.protocol.device import Touched
from harness.protocol.report import FirstLaunch, HostMemory, HostMemoryKind, Value
from harness.protocol.request import GRACE_SECONDS, AboutKernel, Done, Process, Request, SentMatrix
from problem.grades import Errors
from problem.signature import Arguments


class FirstLaunches(Value):
    """The costs that a program pays once, and the output of one of its two launches."""

    times: FirstLaunch
    output: SentMatrix


class MeasureFirstLaunch(Request[FirstLaunches]):
    """Measure the costs that a program pays once, in a process that has not used the GPU.

    Each input repeats a part of it, down and across, so that the output is checked quickly.
    """

    kernel: Kernel
    arguments: Arguments
    parts: tuple[SentMatrix, ...]
    """One of each input."""
    fetch: Literal[1, 2]
    """The launch whose output is returned: the first or the second."""
    compile_ms: NonNegativeFloat

    @property
    def time_limit(self) -> float:
        return 2 * self.seconds + GRACE_SECONDS


class MeasureHostMemory(Request[HostMemory]):
    """Allocate, fill and copy all buffers in one kind of host memory."""

    memory: HostMemoryKind
    arguments: Arguments


class SharedBuffers(Value):
    """The buffers of a launch in GPU memory of the checker, which other processes open."""

    arguments: Arguments
    handles: tuple[str, ...]
    """The cudaIpcMemHandle_t of each, in hexadecimal."""
    offsets: tuple[NonNegativeInt, ...]
    """The offset of each in the memory that its handle opens, in bytes."""


class OpenBuffers(AboutKernel, Request[Done]):
    """Open the checker's buffers and launch on them once, untimed. The first launch loads modules,
    which must not happen in a timed launch."""

    buffers: SharedBuffers
    baseline: str | None = None
    """The problem's module for a GPU, to launch its baseline and not the loaded kernel."""


class CloseBuffers(Request[Done]):
    """Close the checker's buffers."""


class LaunchTime(Value):
    """One launch by two clocks, and the state of the GPU meanwhile."""

    ms: NonNegativeFloat
    """The time by the GPU's events."""
    host_ms: NonNegativeFloat
    """The time by the host's clock, which is longer by what the host takes to notice the end."""
    cycles: NonNegativeInt
    """Cycles of the multiprocessors: the median over all of them."""
    clock_mhz: NonNegativeInt
    power_w: NonNegativeFloat
    throttled: tuple[str, ...]


class TimeLaunch(Request[LaunchTime]):
    """Time one launch on the checker's buffers."""


class SustainedLaunches(Value):
    """Launches back to back."""

    launches: PositiveInt
    seconds: PositiveFloat
    """The times of all of them together."""
    joules: NonNegativeFloat | None
    """The energy of all of them together; None where the GPU does not count it."""


class Sustain(Request[SustainedLaunches]):
    """Launch on the checker's buffers back to back."""

    duration: PositiveFloat
    """How many seconds to launch; `seconds` is what one launch may take."""

    @property
    def time_limit(self) -> float:
        return self.duration + 10 * self.seconds + GRACE_SECONDS


class ShareBuffers(Request[SharedBuffers]):
    """Allocate the buffers of a launch, and free the previous ones."""

    on_gpu: str
    """The problem's module for a GPU."""
    arguments: Arguments


class DrawInputs(Request[Done]):
    """Draw the inputs again, poison the output, overwrite the L2 cache."""

    inputs: str = "uniform"
    """The kind that they are of, in the words of the problem."""


class Checked(Touched):
    error: NonNegativeFloat
    """The error of the output over what is allowed."""


class CheckLaunch(Request[Checked]):
    """Check whether the output follows from the inputs as they were drawn."""


class MeasuredErrors(Value):
    errors: Errors


class MeasureErrors(Request[MeasuredErrors]):
    """Measure how far some blocks of the output are from what they should be. The seed chooses
    them."""

    seed: NonNegativeInt


class Fetched(Value):
    """The output, and the seed of the inputs, which may have changed on the GPU."""

    seed: NonNegativeInt
    output: SentMatrix


class FetchLaunch(Request[Fetched]):
    """Return the output of the launch that was checked last; its inputs were uniform."""


@dataclass(frozen=True, slots=True)
class TimingWorkers:
    """The processes of a measurement. They share only the buffers of the launches.

    kernel: has not touched the GPU before its first launch is measured.
    checker: draws the inputs and checks the outputs. It never loads a submission, because a kernel
        can overwrite the machine code of its own process on the GPU.
    """

    kernel: Process
    baseline: Process
    checker: Process
