"""Computes how many blocks of 16×16 threads fit on one multiprocessor."""

from dataclasses import dataclass
from typing import Literal

from harness.protocol.report import Occupancy, Resources
from problem.launcher import BLOCK

WARP = 32
WARPS_PER_BLOCK = BLOCK[0] * BLOCK[1] // WARP

_REGISTERS = 65_536
_REGISTERS_ALLOCATED_AT_A_TIME = 256
_SHARED_ALLOCATED_AT_A_TIME = 128
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Limits of one multiprocessor: the CUDA Programming Guide's table "Technical Specifications
    per Compute Capability".

    shared: bytes of shared memory; reserved: those that the system takes for each block;
    fp32_lanes: fused multiply-adds that start in one clock;
    fp64_lanes: the same in double precision, and conversions_64: conversions from and to 64-bit
    types (the table "Throughput of Native Arithmetic Instructions");
    cache: bytes of the L1 cache and of shared memory together.

    The last three figures were not compared with the tables again; of 9.0, fp64_lanes and
    conversions_64 fit microbenchmarks on an H200.
    """

    warps: int
    blocks: int
    shared: int
    reserved: int
    fp32_lanes: int
    fp64_lanes: int
    conversions_64: int
    cache: int

    @property
    def shared_per_block(self) -> int:
        """The most shared memory that one block may ask for, in bytes."""
        return self.shared - self.reserved


_MULTIPROCESSORS = {
    70: Multiprocessor(64, 32, 96 * _KIB, 0, 64, 32, 16, 128 * _KIB),
    75: Multiprocessor(32, 16, 64 * _KIB, 0, 64, 2, 2, 96 * _KIB),
    80: Multiprocessor(64, 32, 164 * _KIB, _KIB, 64, 32, 16, 192 * _KIB),
    86: Multiprocessor(48, 16, 100 * _KIB, _KIB, 128, 2, 2, 128 * _KIB),
    87: Multiprocessor(48, 16, 164 * _KIB, _KIB, 128, 2, 2, 192 * _KIB),
    89: Multiprocessor(48, 24, 100 * _KIB, _KIB, 128, 2, 2, 128 * _KIB),
    90: Multiprocessor(64, 32, 228 * _KIB, _KIB, 128, 64, 16, 256 * _KIB),
    100: Multiprocessor(64, 32, 228 * _KIB, _KIB, 128, 64, 16, 256 * _KIB),
    103: Multiprocessor(64, 32, 228 * _KIB, _KIB, 128, 2, 2, 256 * _KIB),
    110: Multiprocessor(48, 24, 228 * _KIB, _KIB, 128, 2, 2, 256 * _KIB),
    120: Multiprocessor(48, 24, 100 * _KIB, _KIB, 128, 2, 2, 128 * _KIB),
    121: Multiprocessor(48, 24, 100 * _KIB, _KIB, 128, 2, 2, 128 * _KIB),
}


def number_of(arch: str) -> int:
    """Return the 90 of sm_90a. Raises ValueError."""
    return int(arch.removeprefix("sm_").rstrip("af"))


def multiprocessor(arch: str) -> Multiprocessor:
    """Return the limits of an architecture such as sm_90a. Raises ValueError if it is unknown."""
    try:
        return _MULTIPROCESSORS[number_of(arch)]
    except (KeyError, ValueError):
        known = ", ".join(f"sm_{known}" for known in _MULTIPROCESSORS)
        raise ValueError(f"unknown GPU architecture {arch}; known: {known}") from None


def occupancy(resources: Resources, arch: str) -> Occupancy:
    """Return the resident blocks by the rules of the CUDA Occupancy Calculator."""
    limits = multiprocessor(arch)
    per_warp = _round_up(resources.registers * WARP, _REGISTERS_ALLOCATED_AT_A_TIME)
    shared = _round_up(resources.shared_bytes + limits.reserved, _SHARED_ALLOCATED_AT_A_TIME)
    # Registers are handed out by each of the four sub-partitions to whole warps.
    warps_by_registers = 4 * (_REGISTERS // 4 // per_warp) if per_warp else limits.warps
    by: dict[Literal["registers", "shared memory", "threads", "blocks"], int] = {
        "registers": warps_by_registers // WARPS_PER_BLOCK,
        "shared memory": limits.shared // shared if shared else limits.blocks,
        "threads": limits.warps // WARPS_PER_BLOCK,
        "blocks": limits.blocks,
    }
    limited_by = min(by, key=lambda limit: by[limit])
    blocks = by[limited_by]
    return Occupancy(
        blocks=blocks, warps=blocks * WARPS_PER_BLOCK, max_warps=limits.warps, limited_by=limited_by
    )


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
