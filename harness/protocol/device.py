"""Requests to every device: describe itself, load a kernel, run it and check it."""

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.protocol.compiler import Kernel, PtxProgram
from harness.protocol.report import (
    CodeLine,
    Counters,
    DeviceInfo,
    Finding,
    Tool,
    ToolRun,
    Unsupported,
    Value,
    WatchedBlocks,
)
from harness.protocol.request import AboutKernel, Fault, Request, SentMatrix
from problem.cases import Shape
from problem.signature import Arguments


class Describe(Request[DeviceInfo]):
    """Ask for the device's model, clocks and libraries. A GPU loads what measurements will need."""

    on_gpu: str | None = None
    """The module of the problem (`Problem.on_gpu`)."""


class Ready(Value):
    """The kernel is loaded."""

    blocks_depend: bool = False
    """Blocks communicate through memory, so a launch cannot be sampled."""
    multiplies_matrices: bool = False
    """It has instructions for the tensor cores."""
    has_mergeable_loads: bool = False
    """ptxas may merge loads of the kernel, and only the machine code shows whether it does."""


class Load(Request[Ready | Unsupported]):
    """Load this kernel; requests that need one are about the last that was loaded."""

    kernel: Kernel | PtxProgram
    """The CPU device needs no machine code."""
    mostly_watched: bool = False
    """It will be sanitized and counted, and hardly run otherwise."""


class Touched(Value):
    """The memory that a launch changed, apart from its output."""

    changed_inputs: tuple[str, ...] = ()
    """The names of the inputs that it changed."""
    wrote_outside: tuple[str, ...] = ()
    """Canaries that were overwritten, as a person would name them: "after C"."""


class Finished(Touched):
    """The answer to a launch that ended without a fault."""

    seconds: NonNegativeFloat
    output: SentMatrix
    """Outside the blocks asked for it is still poisoned."""
    printed: str = ""


class LaunchInputs(Value):
    """The inputs of one launch.

    blocks: run only these blocks, counted x fastest, of a launch that is too large to be run whole;
    None for the whole grid. Only the CPU device supports this. Under a sanitizer, such a launch
    returns no output, and its first blocks are run if blocks depend on one another.
    """

    arguments: Arguments
    matrices: tuple[SentMatrix, ...]
    """The elements of each input."""
    blocks: tuple[NonNegativeInt, ...] | None = None

    @property
    def shape(self) -> Shape:
        return self.arguments.shape


class Run(AboutKernel, Request[Finished]):
    """One launch. The output is poisoned with NaN by the device before it."""

    inputs: LaunchInputs


class Product(Touched):
    """The output of one launch under a sanitizer."""

    launch: NonNegativeInt
    """Its number in the request."""
    tool: Tool | None
    """The tool; None if one launch serves all tools."""
    output: SentMatrix


class Stopped(Value):
    """A launch under a sanitizer that did not finish, for a reason that no tool has found."""

    launch: NonNegativeInt
    fault: Fault


class Sanitized(Value):
    program: str
    runs: tuple[ToolRun, ...]
    findings: tuple[Finding, ...]
    products: tuple[Product, ...]
    stopped: tuple[Stopped, ...] = ()
    sampled: WatchedBlocks | None = None
    """The blocks that ran of a launch of which only some blocks were asked for."""


class Sanitize(AboutKernel, Request[Sanitized]):
    """Run the kernel on each of these inputs under each tool, until something is found."""

    launches: tuple[LaunchInputs, ...]
    tools: tuple[Tool, ...]
    many_blocks: LaunchInputs | None = None
    """A launch that the CPU device adds if the kernel's blocks depend on one another."""
    sample_seconds: float = 30.0
    """How long the CPU device may take for a launch of which it watches only some blocks. It
    watches those, and then, by an estimate, it checks the bounds of all."""


class BranchesDiffer(Value):
    """A branch that depends on the sizes alone goes another way than in the launch that is meant,
    so nothing was counted."""

    line: int
    """The line of the comparison."""


class Count(AboutKernel, Request[Counters | BranchesDiffer]):
    """Count the memory accesses of at most so many blocks; of all where blocks depend on others."""

    inputs: LaunchInputs
    """Matrices of any size: each is repeated or cut, element after element, to fill an input."""
    max_blocks: PositiveInt
    like: Arguments | None = None
    """The launch that is meant, if it is another one."""


class MergeLoads(AboutKernel, Request[Counters]):
    """Correct the last counters of this shape by the loads that ptxas has merged."""

    shape: Shape
    code: tuple[CodeLine, ...]
