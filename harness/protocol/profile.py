"""A GPU's hardware counters of one launch, by source line."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.protocol.report import Value
from harness.protocol.request import Launching, Request
from problem.cases import Shape


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

    kind: Literal["profile"] = "profile"
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


class NoProfile(Value):
    """Hardware counters could not be read."""

    kind: Literal["no-profile"] = "no-profile"
    why: str
    """One sentence that also says what to do."""


class ReadCounters(Launching, Request[Profile | NoProfile]):
    """Launch the loaded kernel once under `ncu`."""

    shape: Shape
