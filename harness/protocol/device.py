"""Requests to every device: describe itself, load a kernel, run it, check it and profile it."""

from __future__ import annotations

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.protocol.compiler import Kernel, PtxProgram
from harness.protocol.report import (
    CodeLine,
    Counters,
    DeviceInfo,
    Finding,
    Place,
    Tool,
    ToolRun,
    Value,
    WatchedBlocks,
)
from harness.protocol.request import Fault, Launching, Request, SentMatrix
from problem.cases import Shape
from problem.signature import Arguments


class Describe(Request[DeviceInfo]):
    """Describe the device."""


class Ready(Value):
    """The kernel is loaded."""

    blocks_depend_on_one_another: bool = False
    """Blocks communicate through memory, so a launch cannot be sampled."""
    multiplies_matrices: bool = False
    """It has instructions for the tensor cores."""
    counts_need_machine_code: bool = True
    """ptxas may merge loads of the kernel, and only the machine code shows whether it does."""


class Refusal(Value):
    """The device cannot run the kernel, which is not the submission's fault."""

    message: str
    instruction: str | None = None
    at: Place | None = None


class Load(Request[Ready | Refusal]):
    """Load this kernel; requests that need one are about the last that was loaded."""

    kernel: Kernel | PtxProgram
    """The CPU device needs no machine code."""
    mostly_watched: bool = False
    """It will be sanitized and counted, and hardly run otherwise."""


class Finished(Value):
    """The launch finished."""

    seconds: NonNegativeFloat
    output: SentMatrix
    """Outside the blocks asked for it is still poisoned."""
    changed_inputs: tuple[str, ...] = ()
    """The names of the inputs that the launch changed."""
    wrote_outside: tuple[str, ...] = ()
    """Canaries that were overwritten, as a person would name them: "after C"."""
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


class Run(Launching, Request[Finished]):
    """One launch. The output is poisoned with NaN by the device before it."""

    inputs: LaunchInputs


class Product(Value):
    """The output of one launch under a sanitizer."""

    launch: NonNegativeInt
    """Its number in the request."""
    tool: Tool | None
    """The tool; None if one launch serves all tools."""
    output: SentMatrix
    changed_inputs: tuple[str, ...] = ()
    """The names of the inputs that the launch changed."""


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


class Sanitize(Launching, Request[Sanitized]):
    """Run the kernel on each of these inputs under each tool, until something is found."""

    launches: tuple[LaunchInputs, ...]
    tools: tuple[Tool, ...]
    sample_seconds: float = 30.0
    """How long the CPU device may take for a launch of which it watches only some blocks: to watch
    those, and then, by an estimate, to check the bounds of all."""


class BranchesAgree(Value):
    """No branch that depends on the sizes alone goes another way."""


class BranchesDiffer(Value):
    """A branch that depends on the sizes alone goes another way."""

    line: int
    """The line of the comparison."""


class CompareBranches(Request[BranchesAgree | BranchesDiffer]):
    """Compare two launches of the loaded kernel."""

    launch: Arguments
    like: Arguments

    @property
    def needs_kernel(self) -> bool:
        return True


class Count(Launching, Request[Counters]):
    """Count the memory accesses of at most so many blocks; of all where blocks depend on others."""

    inputs: LaunchInputs
    """Matrices of any size: each is repeated or cut, element after element, to fill an input."""
    max_blocks: PositiveInt
    code: tuple[CodeLine, ...] = ()
    """The machine code that a GPU would run, if it is known."""


class ProfileLine(Value):
    """One source line, summed over the launch."""

    line: PositiveInt
    warp_instructions: NonNegativeInt = 0
    stall_samples: dict[str, PositiveInt] = {}  # noqa: RUF012 - pydantic copies it
    """How often a warp was found here, by the reason of its wait. A wait for a load counts at the
    line of the load."""
    global_sectors: NonNegativeInt = 0
    global_min_sectors: NonNegativeInt = 0
    global_passes: NonNegativeInt = 0
    shared_wavefronts: NonNegativeInt = 0
    shared_min_wavefronts: NonNegativeInt = 0

    @property
    def samples(self) -> int:
        return sum(self.stall_samples.values())


class Profile(Value):
    """Hardware counters of one launch, read from a report of `ncu`."""

    shape: Shape
    ms: NonNegativeFloat
    fma_active: NonNegativeFloat
    """Shares of the time, from 0 to 1, of multiprocessors that work."""
    tensor_active: NonNegativeFloat
    """The tensor cores' share, by mma.sync and wgmma."""
    issue_active: NonNegativeFloat
    l1_active: NonNegativeFloat
    """The data path of shared memory and L1; wavefronts that TMA wins over others are in it."""
    warps_eligible: NonNegativeFloat
    """Warps of a scheduler that could issue, in the mean."""
    l2_hit_rate: NonNegativeFloat
    dram_bytes: NonNegativeInt
    tma_bytes: NonNegativeInt
    """Bulk copies, which the counters of loads and stores do not see."""
    lines: tuple[ProfileLine, ...]
    stalls: dict[str, NonNegativeFloat] = {}  # noqa: RUF012 - pydantic copies it
    """Warps of a scheduler that wait for each reason when it issues, in the mean."""


class NoProfile(Value):
    """Hardware counters could not be read."""

    why: str
    """One sentence that also says what to do."""


class ReadCounters(Launching, Request[Profile | NoProfile]):
    """Launch the loaded kernel once under `ncu`."""

    shape: Shape
