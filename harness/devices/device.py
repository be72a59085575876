"""The interfaces behind which a kernel runs and is refereed, and the values that cross them.

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
    seconds: PositiveFloat
    """Time limit of each of two launches."""


class MeasureHostMemory(Value):
    """Allocate, fill and copy A, B and C of a shape in one kind of host memory."""

    call: Literal["host-memory"] = "host-memory"
    memory: HostMemoryKind
    shape: Shape


class Arithmetic(StrEnum):
    """Ways in which the baseline's library can multiply."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16 inputs"


class RunBaseline(Value):
    """cuBLAS on A (M×N) and B (N×K), to see what the rule for errors makes of it."""

    call: Literal["run-baseline"] = "run-baseline"
    arithmetic: Arithmetic


class Done(Value):
    """It was done, and there is nothing more to say of it."""

    kind: Literal["done"] = "done"


class SharedMatrices(Value):
    """A (M×N), B (N×K) and C (M×K) in GPU memory that is the referee's, for others to open."""

    kind: Literal["shared-matrices"] = "shared-matrices"
    shape: Shape
    handles: tuple[str, str, str]
    """The cudaIpcMemHandle_t of each, in hexadecimal."""


class Attach(Value):
    """Open the referee's matrices and launch on them once, untimed: what a first launch loads must
    be there before launches are held back."""

    call: Literal["attach"] = "attach"
    matrices: SharedMatrices
    baseline: bool = False
    """Launch the baseline, not the loaded kernel."""
    seconds: PositiveFloat
    """Time limit of the kernel's launch; the baseline has that of any request."""


class Detach(Value):
    """Give the referee's matrices back."""

    call: Literal["detach"] = "detach"


class TimeLaunch(Value):
    """One launch on the referee's matrices, timed."""

    call: Literal["time-launch"] = "time-launch"
    seconds: PositiveFloat
    """Time limit of the launch."""


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


class ScoringDevice(Device, Protocol):
    """A device whose times mean something."""

    def first_launch(self, request: MeasureFirstLaunch) -> FirstLaunch | Fault: ...

    def host_memory(self, request: MeasureHostMemory) -> HostMemory | Fault: ...

    def run_baseline(
        self, request: RunBaseline, A: Matrix, B: Matrix
    ) -> tuple[Finished, Matrix] | Fault: ...

    def attach(self, request: Attach) -> Done | Fault: ...

    def detach(self, request: Detach) -> Done | Fault: ...

    def time_launch(self, request: TimeLaunch) -> LaunchTime | Fault: ...


class LayOut(Value):
    """Allocate A, B and C of a shape, and nothing of the shape before."""

    call: Literal["lay-out"] = "lay-out"
    shape: Shape


class DrawInputs(Value):
    """A and B drawn anew, C poisoned, the L2 cache overwritten."""

    call: Literal["draw-inputs"] = "draw-inputs"
    surprise: bool = False
    """Groups of rows and columns get magnitudes of their own."""


class CheckLaunch(Value):
    """Is C the product of what was drawn?"""

    call: Literal["check-launch"] = "check-launch"


class Checked(Value):
    kind: Literal["checked"] = "checked"
    error: NonNegativeFloat
    """The error of C over what is allowed."""
    changed_inputs: tuple[Literal["A", "B"], ...] = ()


class FetchLaunch(Value):
    """A, B and C of the launch just checked."""

    call: Literal["fetch-launch"] = "fetch-launch"


class Fetched(Value):
    kind: Literal["fetched"] = "fetched"


class Referee(Protocol):
    """Draws the inputs of timed launches and checks what became of them, in a process that never
    sees a submission: a kernel can overwrite whatever machine code its own process has on the GPU.
    """

    def lay_out(self, request: LayOut) -> SharedMatrices | Fault: ...

    def draw_inputs(self, request: DrawInputs) -> Done | Fault: ...

    def check_launch(self, request: CheckLaunch) -> Checked | Fault: ...

    def fetch_launch(self, request: FetchLaunch) -> tuple[Matrix, Matrix, Matrix] | Fault:
        """A and B as they were drawn (not surprises), C as it was left."""
        ...


class Bench(Protocol):
    """Who takes part in timed rounds, each in a process of its own."""

    @property
    def referee(self) -> Referee: ...

    @property
    def kernel(self) -> ScoringDevice: ...

    @property
    def baseline(self) -> ScoringDevice: ...


Request = (
    Describe
    | Load
    | Run
    | Sanitize
    | Count
    | MeasureFirstLaunch
    | MeasureHostMemory
    | RunBaseline
    | Attach
    | Detach
    | TimeLaunch
)

RefereeRequest = LayOut | DrawInputs | CheckLaunch | FetchLaunch
