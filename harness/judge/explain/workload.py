"""The clocks for which a kernel keeps each unit of the GPU busy at the ranked size, and what a
launch of that size occupies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.compiling.occupancy import WARP
from harness.compiling.waits import INSTRUCTION_BYTES
from harness.judge.explain.counts import hot_loop
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import WARP_INSTRUCTIONS, Gpu
from harness.judge.explain.opcodes import pipeline_clocks
from harness.protocol.report import CodeLoop, DisassembledKernel
from problem.cases import RANKED

OVERLAP = 4.0
"""The exponent of the power mean that combines the units: with 1 they would work one after the
other, with infinity all at once. The table of predictions shows how well this works."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Clocks for which each unit of a multiprocessor is busy with its share of the ranked size.

    fill: share of the multiprocessors' time in which the waves of blocks keep them busy.
    exposed: of the clocks of latency, those in which all blocks wait for memory at a time. Of the
        waiting of n blocks, one nth remains. This is a rule of thumb that fits the solutions
        and the kernels of the tests; it is not derived.
    before: clocks of a phase for which everything else waits.
    in_turn: the tensor cores and the schedulers work in turn, not at the same time. Warps that
        multiply by mma.sync issue in order, and wait for data that they have just split or loaded;
        independent instructions would overlap better. Fitted to solutions 30 and 31.
    """

    clocks: Mapping[Unit, float]
    fill: float = 1.0
    exposed: float = 0.0
    before: float = 0.0
    in_turn: bool = False

    @property
    def busiest(self) -> Unit:
        return max(self.clocks, key=lambda unit: self.clocks[unit])

    @property
    def waits_most(self) -> bool:
        """Return whether warps wait for results for more than twice as long as any unit is busy."""
        busy = max(clocks for unit, clocks in self.clocks.items() if unit is not Unit.LATENCY)
        return self.clocks.get(Unit.LATENCY, 0.0) > 2 * busy

    @property
    def total(self) -> float:
        """Clocks that the kernel should take."""
        overlapping = dict(self.clocks)
        if self.exposed:
            overlapping[Unit.LATENCY] -= self.exposed
        # Instructions that multiply are also issued: where units take as many warps as schedulers
        # start, the shorter of both times is a part of the longer.
        same = min(Unit.ISSUE, Unit.FMA, key=lambda unit: overlapping.get(unit, 0.0))
        overlapping.pop(same, None)
        if self.in_turn:
            overlapping[Unit.TENSOR] += overlapping.pop(Unit.ISSUE, 0.0)
        powers = sum(clocks**OVERLAP for clocks in overlapping.values())
        return (float(powers ** (1 / OVERLAP)) + self.exposed) / self.fill + self.before

    def without(self, unit: Unit, clocks: float) -> Workload:
        """Return the workload if the unit had so many clocks less to do."""
        left = max(self.clocks[unit] - clocks, 0.0)
        exposed = self.exposed
        if unit is Unit.LATENCY and self.clocks[unit]:
            exposed *= left / self.clocks[unit]
        return replace(self, clocks={**self.clocks, unit: left}, exposed=exposed)

    def shortened(self, share: float, *units: Unit) -> Workload:
        """Return the workload without a share of the clocks of these units, as far as they are
        used."""
        work = self
        for unit in units:
            if unit in work.clocks:
                work = work.without(unit, work.clocks[unit] * share)
        return work


def workload_of_code(facts: DisassembledKernel, gpu: Gpu) -> Workload | None:
    """Return the workload from the machine code alone; None without a loop of multiply-adds.

    It assumes that the loop that computes makes all products of the ordinary algorithm, and that
    its loads cost nothing.
    """
    loop = hot_loop(facts, None)
    if loop is None or not loop.opcodes.get("FFMA"):
        return None
    products = RANKED.shape.flop / 2 / gpu.multiprocessors
    times = products / WARP / loop.opcodes["FFMA"]
    instructions = max(sum(loop.opcodes.values()), loop.issue_clocks)
    clocks = {
        Unit.FMA: products / gpu.fp32_lanes,
        Unit.ISSUE: times * instructions / WARP_INSTRUCTIONS,
    }
    for unit, busy in pipeline_clocks(loop.opcodes, gpu).items():
        clocks[unit] = times * busy
    return Workload(clocks)


def blocks_and_waves(facts: DisassembledKernel, gpu: Gpu) -> tuple[int, float]:
    columns, rows, _ = facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
    at_once = max(1, facts.occupancy.blocks) * gpu.multiprocessors
    return columns * rows, columns * rows / at_once


def written_products(products: float) -> str:
    """Return a number of products for each useful one as text.

    Counts include what lies outside of the matrices. So a number within 5 % of a whole one is
    written as that.
    """
    whole = round(products)
    return f"{whole if abs(products - whole) < 0.05 * products else products:.2g}"


def fill(facts: DisassembledKernel, gpu: Gpu) -> float:
    """Return the share of the multiprocessors' time in use: the last wave may be partly filled."""
    _, waves = blocks_and_waves(facts, gpu)
    return waves / -(-waves // 1)


def resident_blocks(facts: DisassembledKernel, gpu: Gpu) -> int:
    """Return how many blocks a multiprocessor holds at a time: a launch may have fewer of them."""
    columns, rows, _ = facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
    return min(facts.occupancy.blocks, -(-columns * rows // gpu.multiprocessors))


def loop_bytes(loop: CodeLoop) -> int:
    """Return how long the machine code of a loop is."""
    return sum(loop.opcodes.values()) * INSTRUCTION_BYTES


LINE = 128
"""The bytes of a line of the L1 cache."""


def local_passes(opcodes: Mapping[str, int], names: tuple[str, ...] = ("LDL", "STL")) -> int:
    """Return the passes of the L1 cache that instructions take for local memory. Stores
    also reach the L2 cache."""
    return sum(
        count * (4 if "128" in opcode else 2 if ".64" in opcode else 1)
        for opcode, count in opcodes.items()
        if opcode.split(".")[0] in names
    )


def spills_to(facts: DisassembledKernel, gpu: Gpu) -> Unit:
    """Return the memory that has room for the local memory of all resident threads."""
    occupied = facts.occupancy.blocks * facts.resources.shared_bytes
    bytes_used = facts.occupancy.warps * WARP * facts.resources.stack_bytes
    if bytes_used <= gpu.l1_bytes - occupied:
        return Unit.L1
    return Unit.L2 if bytes_used * gpu.multiprocessors <= gpu.l2_bytes else Unit.DRAM
