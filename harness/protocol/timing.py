"""Requests to the three processes of a measurement: kernel, baseline and checker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Literal, Protocol

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from harness.protocol.compiler import Kernel
from harness.protocol.device import DeviceRequest, Finished
from harness.protocol.matrix import SentMatrix
from harness.protocol.report import FirstLaunch, HostMemory, HostMemoryKind, Value
from harness.protocol.request import (
    GRACE_SECONDS,
    Answer_co,
    Done,
    Fault,
    Launching,
    Limited,
    Request,
)
from problem.cases import Shape

# --------------------------------------------------------------------------------------- devices


class TimingRequest(Request[Answer_co], Generic[Answer_co]):
    """A request that only a GPU answers, whose times mean something."""


class ScoringDevice(Protocol):
    """A GPU, whose times mean something."""

    def ask(
        self, request: DeviceRequest[Answer_co] | TimingRequest[Answer_co]
    ) -> Answer_co | Fault: ...


class FirstLaunches(Value):
    """The costs that a program pays once, and the C of one of its two launches."""

    kind: Literal["first-launches"] = "first-launches"
    times: FirstLaunch
    C: SentMatrix


class MeasureFirstLaunch(Limited, TimingRequest[FirstLaunches]):
    """Measure the costs that a program pays once, in a process that has not used the GPU.

    A and B repeat a few rows and columns, so that C is checked quickly.
    """

    kernel: Kernel
    shape: Shape
    rows: SentMatrix
    """Of A, as long as N."""
    columns: SentMatrix
    """Of B, as long as N."""
    fetch: Literal[1, 2]
    """The launch whose C is returned: the first or the second."""
    compile_ms: NonNegativeFloat

    @property
    def time_limit(self) -> float:
        return 2 * self.seconds + GRACE_SECONDS


class MeasureHostMemory(TimingRequest[HostMemory]):
    """Allocate, fill and copy A, B and C of a shape in one kind of host memory."""

    memory: HostMemoryKind
    shape: Shape


class Arithmetic(StrEnum):
    """Precisions in which the baseline's library can multiply."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16 inputs"


class RunBaseline(TimingRequest[Finished]):
    """Multiply A (M×N) and B (N×K) with cuBLAS."""

    arithmetic: Arithmetic
    A: SentMatrix
    B: SentMatrix


class SharedMatrices(Value):
    """A (M×N), B (N×K) and C (M×K) in GPU memory of the checker, which other processes open."""

    kind: Literal["shared-matrices"] = "shared-matrices"
    shape: Shape
    handles: tuple[str, str, str]
    """The cudaIpcMemHandle_t of each, in hexadecimal."""
    offsets: tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt]
    """The offset of each in the memory that its handle opens, in bytes."""


class Attach(Launching, TimingRequest[Done]):
    """Open the checker's matrices and launch on them once, untimed. A first launch loads things,
    which must not happen in a timed launch."""

    matrices: SharedMatrices
    baseline: bool = False
    """Launch the baseline, not the loaded kernel."""

    @property
    def needs_kernel(self) -> bool:
        return not self.baseline


class Detach(TimingRequest[Done]):
    """Close the checker's matrices."""


class LaunchTime(Value):
    """One launch by two clocks, and the state of the GPU meanwhile."""

    kind: Literal["launch-time"] = "launch-time"
    ms: NonNegativeFloat
    """By the GPU's events."""
    host_ms: NonNegativeFloat
    """By the host's clock. It is longer by the time that the host needs to notice the end."""
    cycles: NonNegativeInt
    """Cycles of the multiprocessors: the median over all of them."""
    clock_mhz: NonNegativeInt
    power_w: NonNegativeFloat
    throttled: tuple[str, ...]


class TimeLaunch(Limited, TimingRequest[LaunchTime]):
    """Time one launch on the checker's matrices."""


class SustainedLaunches(Value):
    """Launches back to back."""

    kind: Literal["sustained-launches"] = "sustained-launches"
    launches: PositiveInt
    seconds: PositiveFloat
    """The times of all of them together."""
    joules: NonNegativeFloat | None
    """The energy of all of them together; None where the GPU does not count it."""


class Sustain(Limited, TimingRequest[SustainedLaunches]):
    """Launch on the checker's matrices back to back."""

    duration: PositiveFloat
    """For so many seconds; `seconds` is what one launch may take."""

    @property
    def time_limit(self) -> float:
        return self.duration + 10 * self.seconds + GRACE_SECONDS


# --------------------------------------------------------------------------------------- checker


class CheckerRequest(Request[Answer_co], Generic[Answer_co]):
    """A request that the checker answers."""


class Checker(Protocol):
    """Draws the inputs of timed launches and checks their results.

    Its process never loads a submission, because a kernel can overwrite the machine code of its own
    process on the GPU.
    """

    def ask(self, request: CheckerRequest[Answer_co]) -> Answer_co | Fault: ...


class LayOut(CheckerRequest[SharedMatrices]):
    """Allocate A, B and C of a shape, and free those of the previous shape."""

    shape: Shape


class DrawInputs(CheckerRequest[Done]):
    """Draw A and B again, poison C, overwrite the L2 cache."""

    inputs: str = "uniform"
    """The kind that they are of, in the words of the problem."""


class Checked(Value):
    kind: Literal["checked"] = "checked"
    error: NonNegativeFloat
    """The error of C over what is allowed."""
    changed_inputs: tuple[Literal["A", "B"], ...] = ()
    wrote_outside: tuple[str, ...] = ()
    """Canaries that were overwritten, as a person would name them: "behind C"."""


class CheckLaunch(CheckerRequest[Checked]):
    """Check whether C is the product of A and B as they were drawn."""


class MeasuredErrors(Value):
    """The worst errors of some blocks of C, as problem/accuracy.py defines them."""

    kind: Literal["measured-errors"] = "measured-errors"
    block: NonNegativeFloat
    by_rows: NonNegativeFloat
    by_components: NonNegativeFloat


class MeasureErrors(CheckerRequest[MeasuredErrors]):
    """How far is C from the product of what was drawn? The seed chooses the blocks."""

    seed: NonNegativeInt


class Fetched(Value):
    """C, and the seeds that A and B were drawn from. The inputs on the GPU may have changed."""

    kind: Literal["fetched"] = "fetched"
    seed_of_A: NonNegativeInt
    seed_of_B: NonNegativeInt
    C: SentMatrix


class FetchLaunch(CheckerRequest[Fetched]):
    """Return the C of the launch that was checked last; its inputs were uniform."""


# --------------------------------------------------------------------------------------- workers


@dataclass(frozen=True, slots=True)
class TimingWorkers:
    """The processes of a measurement. They share only A, B and C.

    kernel: has not touched the GPU before its first launch is measured.
    """

    kernel: ScoringDevice
    baseline: ScoringDevice
    checker: Checker
