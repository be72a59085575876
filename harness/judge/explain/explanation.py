"""The content of an explanation as typed values, which the terminal and the pages show."""

from enum import StrEnum

from pydantic import Field

from harness.protocol.report import Occupancy, Resources, Value, Verdict


class Unit(StrEnum):
    """A part of the GPU that can limit the speed of a kernel."""

    L1 = "shared memory and L1"
    FMA = "FP32 units"
    FP64 = "FP64 units"
    SPECIAL = "conversions and special functions"
    INTEGER = "integer units"
    LATENCY = "latency"
    ISSUE = "issue slots"
    FETCH = "instruction fetch"
    TENSOR = "tensor cores"
    L2 = "L2 cache"
    DRAM = "device memory"


class UnitTime(Value):
    """The time for which one unit is busy at the ranked size."""

    unit: Unit
    ms: float
    why: str
    """The work that keeps it busy, in figures."""


class Roof(Value):
    """The speed that one unit allows this kernel, in useful TFLOP/s (2·M·N·K over the time)."""

    name: str
    tflops: float
    intensity: float | None = None
    """Useful operations a byte, where the roof is a memory's."""
    gb_per_s: float | None = None


class LineCost(Value):
    """The cost of one source line."""

    line: int
    instructions: int = 0
    """Machine instructions that the compiler made of it."""
    kinds: dict[str, int] = Field(default_factory=dict)
    sectors_per_request: float | None = None
    min_sectors_per_request: float | None = None
    wavefronts_per_request: float | None = None
    min_wavefronts_per_request: float | None = None
    reads_again: float | None = None
    """How often a block reads each sector of global memory from this line."""
    lanes: float | None = None
    """Active threads of a warp, of 32."""
    cost: float | None = None
    """Share of the work of issue slots, tensor cores, shared memory and L1 together."""
    l1_share: float | None = None
    """Share of the wavefronts and passes of shared memory and L1."""


class Advice(Value):
    """One finding: where the time goes, what it costs, what usually helps."""

    rule: str
    line: int | None
    message: str
    cost: float
    """Share of the time that it takes."""
    gain: float
    """How many times as fast the kernel should be without it."""
    remedy: str
    see: str | None
    """The solution that shows the remedy."""


class Change(Value):
    """How long a unit was busy with the old kernel, and is with the new one."""

    unit: Unit
    before_ms: float
    after_ms: float


class Comparison(Value):
    """The changes since another kernel, and why the new one is faster or slower."""

    name: str
    """The name of the old kernel."""
    before_ms: float | None
    """Estimates; None where a kernel could not be counted."""
    after_ms: float | None
    why: str
    """One sentence."""
    units: tuple[Change, ...] = ()
    """The units whose times changed, the largest change first."""
    occupancy: tuple[float, float]
    registers: tuple[int, int]
    solved: tuple[str, ...] = ()
    """The rules with a finding for the old kernel alone."""
    new: tuple[str, ...] = ()
    """The rules with a finding for the new kernel alone."""


class Explanation(Value):
    """The explanation of a kernel's speed."""

    name: str
    gpu: str
    assumed: bool
    """Whether the kernel did not run on such a GPU: its figures are those of the data sheet."""
    verdict: Verdict | None
    verdict_message: str
    resources: Resources
    occupancy: Occupancy
    blocks: int
    waves: float
    """Times that the GPU is filled with blocks at the ranked size."""
    tail: float
    """Share of the time in which the last wave leaves multiprocessors idle."""
    block_bytes: int | None
    """Bytes of A and B that one block must read, and of C that it must write. None if blocks divide
    the work among themselves: one of them then computes something other than the launch's tile."""
    block_flop: int | None
    units: tuple[UnitTime, ...]
    """The busiest first."""
    roofs: tuple[Roof, ...]
    estimated_ms: float | None
    measured_ms: float | None
    mix: dict[str, int]
    """Machine instructions by kind, in the loop that computes; in the whole kernel without one."""
    loop: tuple[int, int] | None
    """First and last source line of that loop."""
    lines: tuple[LineCost, ...]
    findings: tuple[Advice, ...]
    notes: tuple[str, ...] = ()
    """Facts that could not be determined, and why."""
    against: Comparison | None = None
    """None where no other kernel was named."""
