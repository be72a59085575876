"""What the processes of a measurement are asked: the kernel's, the baseline's and the checker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Literal, Protocol

from pydantic import NonNegativeFloat, NonNegativeInt

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
    """What only a device answers whose times mean something."""


class ScoringDevice(Protocol):
    """A device whose times mean something."""

    def ask(
        self, request: DeviceRequest[Answer_co] | TimingRequest[Answer_co]
    ) -> Answer_co | Fault: ...


class FirstLaunches(Value):
    """What a program pays once, and the C of one of its two launches."""

    kind: Literal["first-launches"] = "first-launches"
    times: FirstLaunch
    C: SentMatrix


class MeasureFirstLaunch(Limited, TimingRequest[FirstLaunches]):
    """What a program pays once; asked of a process that has not touched the GPU before.

    A and B are made of few rows and columns, repeated, so that C is soon checked.
    """

    kernel: Kernel
    shape: Shape
    rows: SentMatrix
    """Of A, as long as N."""
    columns: SentMatrix
    """Of B, as long as N."""
    fetch: Literal[1, 2]
    """Whose C to answer with: the first launch's or the second's."""
    compile_ms: NonNegativeFloat

    @property
    def time_limit(self) -> float:
        return 2 * self.seconds + GRACE_SECONDS


class MeasureHostMemory(TimingRequest[HostMemory]):
    """Allocate, fill and copy A, B and C of a shape in one kind of host memory."""

    memory: HostMemoryKind
    shape: Shape


class Arithmetic(StrEnum):
    """Ways in which the baseline's library can multiply."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16 inputs"


class RunBaseline(TimingRequest[Finished]):
    """cuBLAS on A (M×N) and B (N×K), to see what the rule for errors makes of it."""

    arithmetic: Arithmetic
    A: SentMatrix
    B: SentMatrix


class SharedMatrices(Value):
    """A (M×N), B (N×K) and C (M×K) in GPU memory that is the checker's, for others to open."""

    kind: Literal["shared-matrices"] = "shared-matrices"
    shape: Shape
    handles: tuple[str, str, str]
    """The cudaIpcMemHandle_t of each, in hexadecimal."""
    offsets: tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt]
    """Where each begins in the memory that its handle opens, in bytes."""


class Attach(Launching, TimingRequest[Done]):
    """Open the checker's matrices and launch on them once, untimed: what a first launch loads must
    be there before launches are held back."""

    matrices: SharedMatrices
    baseline: bool = False
    """Launch the baseline, not the loaded kernel."""

    @property
    def needs_kernel(self) -> bool:
        return not self.baseline


class Detach(TimingRequest[Done]):
    """Give the checker's matrices back."""


class LaunchTime(Value):
    """One launch by two clocks, and the state of the GPU meanwhile."""

    kind: Literal["launch-time"] = "launch-time"
    ms: NonNegativeFloat
    """By the GPU's events."""
    host_ms: NonNegativeFloat
    """By the host's clock: longer by what it takes to notice the end, for every kernel alike."""
    clock_mhz: NonNegativeInt
    power_w: NonNegativeFloat
    throttled: tuple[str, ...]


class TimeLaunch(Limited, TimingRequest[LaunchTime]):
    """One launch on the checker's matrices, timed."""


# --------------------------------------------------------------------------------------- checker


class CheckerRequest(Request[Answer_co], Generic[Answer_co]):
    """What the checker answers."""


class Checker(Protocol):
    """Draws the inputs of timed launches and checks what became of them, in a process that never
    sees a submission: a kernel can overwrite whatever machine code its own process has on the GPU.
    """

    def ask(self, request: CheckerRequest[Answer_co]) -> Answer_co | Fault: ...


class LayOut(CheckerRequest[SharedMatrices]):
    """Allocate A, B and C of a shape, and nothing of the shape before."""

    shape: Shape


class DrawInputs(CheckerRequest[Done]):
    """A and B drawn anew, C poisoned, the L2 cache overwritten."""

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
    """Is C the product of what was drawn?"""


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
    """C as it was left, and the seeds that A and B were drawn from: whatever became of them on the
    GPU, that is what was asked."""

    kind: Literal["fetched"] = "fetched"
    seed_of_A: NonNegativeInt
    seed_of_B: NonNegativeInt
    C: SentMatrix


class FetchLaunch(CheckerRequest[Fetched]):
    """The launch just checked; its inputs were uniform."""


# ------------------------------------------------------------------------------------ who is there


@dataclass(frozen=True, slots=True)
class TimingWorkers:
    """The processes of a measurement; they share A, B and C and nothing else.

    kernel: has not touched the GPU before its first launch is measured.
    """

    kernel: ScoringDevice
    baseline: ScoringDevice
    checker: Checker
