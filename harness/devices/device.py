"""The interface behind which a kernel runs, and the typed values that cross it.

A device lives in a worker process (harness/workers/worker.py); the judge speaks to it through
remote.py beside that, which offers the same interface and turns a worker that hangs or dies into a
`Fault`. Every request and result is a value that travels as JSON; matrices travel beside it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Protocol

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from harness.compiling.kernel import Kernel
from harness.report import (
    Counters,
    DeviceInfo,
    Finding,
    FirstLaunch,
    HostMemory,
    HostMemoryKind,
    Place,
    Tool,
    ToolRun,
    Value,
)
from problem.cases import Matrix, Shape


class Ready(Value):
    """The kernel is loaded."""

    kind: Literal["ready"] = "ready"
    blocks_depend_on_one_another: bool = False
    """Tickets, flags or device buffers between blocks: such a launch cannot be sampled."""


class Refusal(Value):
    """This device cannot run the kernel; not the submission's fault."""

    kind: Literal["refusal"] = "refusal"
    message: str
    instruction: str | None = None
    at: Place | None = None


class Describe(Value):
    call: Literal["describe"] = "describe"


class Load(Value):
    call: Literal["load"] = "load"
    kernel: Kernel


class Run(Value):
    """One launch on A (M×N) and B (N×K). C is poisoned with NaN by the device before it."""

    call: Literal["run"] = "run"
    shape: Shape
    blocks: tuple[NonNegativeInt, ...] | None = None
    """Run only these blocks, counted x fastest; None for the whole grid."""
    seconds: PositiveFloat
    """Time limit of the launch."""


class Finished(Value):
    """The launch came to its end; C (M×K) travels beside this."""

    kind: Literal["finished"] = "finished"
    seconds: NonNegativeFloat
    changed_inputs: tuple[Literal["A", "B"], ...] = ()
    wrote_outside: tuple[str, ...] = ()
    """Canaries that were overwritten, as a person would name them: "behind C"."""
    printed: str = ""


class Fault(Value):
    """The launch did not come to its end, or the worker did not survive it."""

    kind: Literal["fault"] = "fault"
    cause: Literal[
        "memory", "deadlock", "trap", "launch-refused", "time-limit", "out-of-memory", "judge"
    ]
    message: str
    finding: Finding | None = None
    """Set for memory faults and deadlocks where the device knows the place."""
    at: Place | None = None
    signal: str | None = None
    """The signal that ended the worker, such as SIGSEGV."""
    details: str = ""
    """For whoever mends the judge, where the cause is ours."""
    printed: str = ""


class Sanitize(Value):
    """The kernel on each shape under each tool; inputs are uniform and nobody's secret."""

    call: Literal["sanitize"] = "sanitize"
    shapes: tuple[Shape, ...]
    tools: tuple[Tool, ...]
    seconds: PositiveFloat
    """Time limit of the whole request."""


class Sanitized(Value):
    kind: Literal["sanitized"] = "sanitized"
    program: str
    runs: tuple[ToolRun, ...]
    findings: tuple[Finding, ...]


class Count(Value):
    """Count what the memory system would do over at most so many blocks."""

    call: Literal["count"] = "count"
    shape: Shape
    max_blocks: PositiveInt
    seconds: PositiveFloat


class Uncounted(Value):
    """This device counts nothing."""

    kind: Literal["uncounted"] = "uncounted"


class Device(Protocol):
    """Where a kernel runs. After a Fault the device may be unusable: the worker is replaced."""

    def info(self) -> DeviceInfo | Fault: ...

    def load(self, kernel: Kernel) -> Ready | Refusal | Fault: ...

    def run(self, request: Run, A: Matrix, B: Matrix) -> tuple[Finished, Matrix] | Fault:
        """Launch the loaded kernel. Outside the blocks asked for, C stays NaN."""
        ...

    def sanitize(self, request: Sanitize) -> Sanitized | Fault: ...

    def count(self, request: Count) -> Counters | Fault | None:
        """Counters, from a device that has them."""
        ...


class MeasureFirstLaunch(Value):
    """What a program pays once, measured in a worker that has not touched the GPU before."""

    call: Literal["first-launch"] = "first-launch"
    kernel: Kernel
    shape: Shape
    compile_ms: NonNegativeFloat


class MeasureHostMemory(Value):
    """Allocate, fill and copy A, B and C of a shape in one kind of host memory."""

    call: Literal["host-memory"] = "host-memory"
    memory: HostMemoryKind
    shape: Shape


class FetchRound(Value):
    """A, B and the kernel's C of the round just timed."""

    call: Literal["fetch-round"] = "fetch-round"


class Fetched(Value):
    kind: Literal["fetched"] = "fetched"


class Arithmetic(StrEnum):
    """Ways in which the baseline's library can multiply."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16 inputs"


class RunBaseline(Value):
    """cuBLAS on A (M×N) and B (N×K), to see what the rule for errors makes of it."""

    call: Literal["run-baseline"] = "run-baseline"
    arithmetic: Arithmetic


class Prepare(Value):
    """Allocate for timed rounds at a shape, and warm up until the clock is steady."""

    call: Literal["prepare"] = "prepare"
    shape: Shape
    baseline: bool = False
    """Time the baseline beside itself instead of the loaded kernel: the judge's own noise."""
    seconds: PositiveFloat
    """Longest warm-up."""


class Prepared(Value):
    kind: Literal["prepared"] = "prepared"
    launches: NonNegativeInt
    seconds: NonNegativeFloat
    clock_mhz: NonNegativeInt


class TimeRound(Value):
    """One timed launch of the baseline and one of the kernel, each on inputs never seen before."""

    call: Literal["time-round"] = "time-round"
    kernel_first: bool
    surprise: bool = False
    """The kernel's inputs are of other magnitudes than usual, and its launch is also timed by the
    host's clock: not for the score."""
    seconds: PositiveFloat = 60.0
    """Time limit of the round."""


class RoundTime(Value):
    kind: Literal["round"] = "round"
    kernel_ms: NonNegativeFloat
    baseline_ms: NonNegativeFloat
    clock_mhz: NonNegativeInt
    power_w: NonNegativeFloat
    throttled: tuple[str, ...]
    check: NonNegativeFloat
    """The error of the kernel's C over what is allowed."""
    baseline_check: NonNegativeFloat
    changed_inputs: tuple[Literal["A", "B"], ...] = ()
    kernel_host_ms: NonNegativeFloat = 0.0
    """The kernel's launch by the host's clock; zero unless it was a surprise."""


class ScoringDevice(Device, Protocol):
    """A device whose times mean something."""

    def first_launch(self, request: MeasureFirstLaunch) -> FirstLaunch | Fault: ...

    def host_memory(self, request: MeasureHostMemory) -> HostMemory | Fault: ...

    def run_baseline(
        self, request: RunBaseline, A: Matrix, B: Matrix
    ) -> tuple[Finished, Matrix] | Fault: ...

    def prepare(self, request: Prepare) -> Prepared | Fault: ...

    def time_round(self, request: TimeRound) -> RoundTime | Fault: ...

    def fetch_round(self) -> tuple[Matrix, Matrix, Matrix] | Fault:
        """A, B and the kernel's C of the round just timed."""
        ...


Request = (
    Describe
    | Load
    | Run
    | Sanitize
    | Count
    | MeasureFirstLaunch
    | MeasureHostMemory
    | RunBaseline
    | Prepare
    | TimeRound
    | FetchRound
)
