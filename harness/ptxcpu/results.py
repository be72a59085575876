"""The result of a launch: how it ended, its findings, and its counters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from harness.ptxcpu.grid import Size
from harness.ptxcpu.runtime.layout import Cause


class Hazard(StrEnum):
    """The kind of a finding."""

    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    UNINITIALISED = "uninitialised"
    RACE = "race"
    DIVERGENT_BARRIER = "divergent-barrier"
    EARLY_RETURN = "early-return"
    DEADLOCK = "deadlock"


SHARED_MEMORY, LOCAL_MEMORY, MODULE_MEMORY = "shared memory", "local memory", "module memory"


@dataclass(frozen=True)
class Location:
    """An instruction of a thread. line: the line of the source; None if the PTX has none. caller:
    the line of the call, if it is in a function that the compiler inlined at several lines."""

    line: int | None
    thread: Size
    block: Size
    caller: int | None = None


@dataclass(frozen=True)
class Finding:
    """An error of a kernel. Equal ones are counted.

    An early return is a barrier before which threads of its block had returned. It is no error, but
    may explain one: the barrier does not order what these threads accessed, and what they would
    have stored is missing.

    other: the second access of a race.
    memory: the name of the buffer, or one of the constants above.
    index: the index of the first element accessed, in a buffer.
    bytes_outside: the distance in bytes from the nearest end of the memory.
    partly: other words of an uninitialised read were initialised. It may be harmless: what is not
        initialised is NaN, which reaches a result if it is used.
    """

    hazard: Hazard
    message: str
    at: Location
    other: Location | None = None
    access: Literal["read", "write", "atomic"] | None = None
    size: int | None = None
    memory: str | None = None
    index: tuple[int, ...] | None = None
    bytes_outside: int | None = None
    partly: bool = False
    occurrences: int = 1

    def __str__(self) -> str:
        return f"{self.hazard}: {self.message}"


@dataclass(frozen=True)
class Fault:
    """The reason why a launch was stopped."""

    cause: Cause
    message: str
    at: Location
    finding: Finding | None = None


@dataclass(frozen=True)
class LineCounters:
    """The counters of one line of the source, for the blocks counted."""

    line: int
    instructions: int = 0
    warp_instructions: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    global_min_sectors: int = 0
    global_first_sectors: int = 0
    global_new_sectors: int = 0
    global_passes: int = 0
    copy_passes: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    shared_min_wavefronts: int = 0


@dataclass(frozen=True)
class Counters:
    """The counters of a GPU's memory system, for the blocks counted."""

    counted_blocks: int
    blocks: int
    global_load_requests: int
    global_load_sectors: int
    global_store_requests: int
    global_store_sectors: int
    shared_load_requests: int
    shared_load_wavefronts: int
    shared_store_requests: int
    shared_store_wavefronts: int
    bank_conflicts: int
    divergent_branches: int
    instructions: Mapping[str, int]
    """The number of threads that executed each opcode."""
    warp_instructions: int
    lines: tuple[LineCounters, ...]


@dataclass(frozen=True)
class Result:
    """How a launch ended.

    changed: read-only buffers to which the kernel wrote other values, by index. They are as before.
    blocks: the number of blocks of the launch.
    vector_blocks: the number of blocks that ran on the vector path to their end.
    """

    seconds: float
    fault: Fault | None = None
    findings: tuple[Finding, ...] = ()
    changed: tuple[int, ...] = ()
    printed: str = ""
    counters: Counters | None = field(default=None, repr=False)
    blocks: int = 0
    vector_blocks: int = 0
