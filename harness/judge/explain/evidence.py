"""The facts about a kernel from which the rules derive their advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import L2_BYTES, Gpu
from harness.judge.explain.latency import iteration
from harness.judge.explain.opcodes import Kind, mix, pipeline_clocks
from harness.judge.explain.workload import (
    LINE,
    Workload,
    hot_loop,
    iterations,
    local_passes,
    memory_latency,
    new_sectors,
    scale,
    spills_to,
    tensor_work,
    without_merged_loads,
    workload,
)
from harness.protocol.report import CodeLoop, Counters, DisassembledKernel, LineCounters, Producer


@dataclass(frozen=True)
class Evidence:
    """The facts about a kernel that the rules examine.

    blocks_share_work: the blocks depend on one another, so they need not be equally long.
    """

    facts: DisassembledKernel
    counters: Counters
    gpu: Gpu
    blocks_share_work: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", without_merged_loads(self.facts, self.counters))

    @cached_property
    def work(self) -> Workload:
        return workload(self.facts, self.counters, self.gpu)

    @cached_property
    def loop(self) -> CodeLoop | None:
        """The loop that computes."""
        return hot_loop(self.facts, self.counters)

    @cached_property
    def opcodes(self) -> dict[str, int]:
        """How often each opcode stands in the loop that computes; empty without such a loop."""
        return dict(self.loop.opcodes) if self.loop else {}

    @cached_property
    def loop_mix(self) -> dict[Kind, int]:
        """The number of instructions of each kind in that loop."""
        return mix(self.opcodes)

    @property
    def loop_size(self) -> int:
        """The number of instructions in that loop."""
        return sum(self.opcodes.values())

    @cached_property
    def tensor_work(self) -> dict[tuple[str, bool], float]:
        """Multiply-adds on the tensor cores, as `workload.tensor_work` returns them."""
        return tensor_work(self.counters)

    @cached_property
    def ratio(self) -> float:
        """One multiprocessor's part of the ranked size, over the work that was counted."""
        return scale(self.facts, self.counters) / self.gpu.multiprocessors

    @property
    def rounds(self) -> float:
        """How often a multiprocessor's warps go through the loop at the ranked size."""
        return iterations(self.facts, self.counters) * self.ratio

    def without_passes(self, passes: float) -> Workload:
        """Return the work that is left without some of the counted passes of the L1 cache."""
        return self.work.without(Unit.L1, passes * self.ratio / self.gpu.l1_passes)

    def with_loop(self, opcodes: dict[str, int]) -> Workload:
        """Return the work that is left if the loop has only these instructions.

        A warp waits in proportion to them, or less.
        """
        before = self.opcodes
        share = sum(opcodes.values()) / self.loop_size
        left = shortened(self.work, 1 - share, Unit.ISSUE, Unit.LATENCY)
        kept = pipeline_clocks(opcodes, self.gpu)
        for unit, busy in pipeline_clocks(before, self.gpu).items():
            left = left.without(unit, self.rounds * (busy - kept.get(unit, 0.0)))
        passes = self.rounds * (local_passes(before) - local_passes(opcodes))
        left = left.without(Unit.L1, passes / self.gpu.l1_passes)
        home = spills_to(self.facts, self.gpu)
        stores = local_passes(before, ("STL",)) - local_passes(opcodes, ("STL",))
        on_to_l2 = self.rounds * stores if home is Unit.L1 else passes
        left = left.without(Unit.L2, on_to_l2 * LINE / L2_BYTES)
        if passes and home is Unit.DRAM:
            left = left.without(Unit.DRAM, passes * LINE / self.gpu.memory_bytes_per_clock)
        return left

    def waits_without(self, producer: Producer) -> float:
        """Return what share of an iteration is left if nothing waits for these results."""
        assert self.loop is not None
        kept = tuple(wait for wait in self.loop.waits if wait.producer is not producer)
        clocks = [
            iteration(
                self.loop.model_copy(update={"waits": waits}),
                spills_to(self.facts, self.gpu) is not Unit.L1,
                new_sectors(self.facts, self.counters),
                memory_latency(self.facts, self.counters, self.gpu),
            ).clocks
            for waits in (kept, self.loop.waits)
        ]
        return clocks[0] / clocks[1]

    def most_in_loop(self, kind: Kind) -> int | None:
        """Return the line of the loop from which most instructions of a kind came."""
        if self.loop is None or self.loop.first_line is None or self.loop.last_line is None:
            return None
        within = range(self.loop.first_line, self.loop.last_line + 1)
        counts = {
            line.line: mix(line.opcodes).get(kind, 0)
            for line in self.facts.lines
            if line.line in within
        }
        return max(counts, key=lambda line: counts[line], default=None)

    def most(self, wanted: Callable[[str], bool]) -> int | None:
        """Return the line from which most of the wanted instructions came."""
        counts = {
            line.line: sum(count for opcode, count in line.opcodes.items() if wanted(opcode))
            for line in self.facts.lines
        }
        found = max(counts, key=lambda line: counts[line], default=None)
        return found if found is not None and counts[found] else None

    def costliest(self, cost: Callable[[LineCounters], float]) -> tuple[LineCounters, float] | None:
        """Return the line with most of the cost, and the cost of all lines."""
        lines = [line for line in self.counters.lines if cost(line) > 0]
        if not lines:
            return None
        return max(lines, key=cost), sum(cost(line) for line in lines)


def shortened(work: Workload, share: float, *units: Unit) -> Workload:
    """Return the work without a share of the clocks of these units, as far as they are used."""
    for unit in units:
        if unit in work.clocks:
            work = work.without(unit, work.clocks[unit] * share)
    return work
