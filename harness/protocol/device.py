"""What every device is asked: to describe itself, to load a kernel, to run and to inspect it."""

from __future__ import annotations

from typing import Generic, Literal, Protocol

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.protocol.compiler import Kernel, PtxProgram
from harness.protocol.matrix import SentMatrix
from harness.protocol.report import (
    CodeLine,
    Counters,
    DeviceInfo,
    Finding,
    Place,
    Tool,
    ToolRun,
    Value,
)
from harness.protocol.request import Answer_co, Fault, Launching, Request
from problem.cases import Shape


class DeviceRequest(Request[Answer_co], Generic[Answer_co]):
    """What every device answers."""


class Device(Protocol):
    """Where a kernel runs. After a Fault the process is another one, which gets the kernel again
    before it is asked for anything that needs it."""

    def ask(self, request: DeviceRequest[Answer_co]) -> Answer_co | Fault: ...


class Describe(DeviceRequest[DeviceInfo]):
    """What is this device?"""


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


class Load(DeviceRequest[Ready | Refusal]):
    """Load this kernel; requests that need one are about the last that was loaded."""

    kernel: Kernel | PtxProgram
    """The CPU device needs no machine code."""
    mostly_watched: bool = False
    """It will be sanitized and counted, and hardly run otherwise."""


class Finished(Value):
    """The launch came to its end."""

    kind: Literal["finished"] = "finished"
    seconds: NonNegativeFloat
    C: SentMatrix
    """M×K; outside the blocks asked for it is still poisoned."""
    changed_inputs: tuple[Literal["A", "B"], ...] = ()
    wrote_outside: tuple[str, ...] = ()
    """Canaries that were overwritten, as a person would name them: "behind C"."""
    printed: str = ""


class Run(Launching, DeviceRequest[Finished]):
    """One launch on A (M×N) and B (N×K). C is poisoned with NaN by the device before it."""

    shape: Shape
    A: SentMatrix
    B: SentMatrix
    blocks: tuple[NonNegativeInt, ...] | None = None
    """Run only these blocks, counted x fastest; None for the whole grid."""


class LaunchInputs(Value):
    """What one launch is given.

    blocks: of a launch that is too large to be watched whole, those that are, counted x fastest;
    where blocks depend on one another, the first instead. Asked of the CPU device alone, and no
    product of them is handed back.
    """

    shape: Shape
    A: SentMatrix
    B: SentMatrix
    blocks: tuple[NonNegativeInt, ...] | None = None


class Product(Value):
    """What one launch under a sanitizer made of C."""

    launch: NonNegativeInt
    """Its number in the request."""
    tool: Tool | None
    """Under which tool; None where one launch serves all."""
    C: SentMatrix
    changed_inputs: tuple[Literal["A", "B"], ...] = ()


class Stopped(Value):
    """A launch under a sanitizer that did not come to its end, where no tool says why."""

    launch: NonNegativeInt
    fault: Fault


class Sanitized(Value):
    kind: Literal["sanitized"] = "sanitized"
    program: str
    runs: tuple[ToolRun, ...]
    findings: tuple[Finding, ...]
    products: tuple[Product, ...]
    stopped: tuple[Stopped, ...] = ()


class Sanitize(Launching, DeviceRequest[Sanitized]):
    """The kernel on each of these inputs under each tool, until something is found."""

    launches: tuple[LaunchInputs, ...]
    tools: tuple[Tool, ...]


class Uncounted(Value):
    """This device counts nothing, or not for this kernel."""

    kind: Literal["uncounted"] = "uncounted"


class Counted(Value):
    kind: Literal["counted"] = "counted"
    counters: Counters


class Count(Launching, DeviceRequest[Counted | Uncounted]):
    """Count what the memory system would do over at most so many blocks."""

    inputs: LaunchInputs
    max_blocks: PositiveInt
    code: tuple[CodeLine, ...] = ()
    """The machine code that a GPU would run, where it is known."""
