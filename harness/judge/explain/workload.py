"""How long each unit of the GPU is busy with a kernel at the ranked size, from what is known of it
without running it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.compiling.occupancy import WARP
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import (
    L2_BYTES,
    LSU_WAVEFRONTS,
    MMA_SYNC_SHARE,
    WARP_INSTRUCTIONS,
    Gpu,
)
from harness.judge.explain.opcodes import Kind, kind_of, matrix_instruction, matrix_type, mix
from harness.protocol.report import CodeLoop, Counters, DisassembledKernel, LineCounters
from problem.cases import RANKED

OVERLAP = 4.0
"""How well units work at the same time: 1 would be one after the other, infinity all at once. A
power mean between them; the table of predictions shows how far that carries."""

SECTOR = 32


@dataclass(frozen=True, slots=True)
class Workload:
    """Clocks for which each unit of a multiprocessor is busy with its share of the ranked size.

    fill: share of the multiprocessors' time that the waves of blocks leave them busy.
    """

    clocks: Mapping[Unit, float]
    fill: float = 1.0

    @property
    def busiest(self) -> Unit:
        return max(self.clocks, key=lambda unit: self.clocks[unit])

    @property
    def total(self) -> float:
        """Clocks that the kernel should take."""
        powers = sum(clocks**OVERLAP for clocks in self.clocks.values())
        return float(powers ** (1 / OVERLAP)) / self.fill

    def without(self, unit: Unit, clocks: float) -> Workload:
        """As if the unit had so many clocks less to do."""
        left = max(self.clocks[unit] - clocks, 0.0)
        return replace(self, clocks={**self.clocks, unit: left})


def all_products_executed(facts: DisassembledKernel, counters: Counters) -> bool:
    """Whether the counted launch executed every matrix instruction that the kernel has. One that
    did not may have gone a way that the ranked size does not go."""
    executed = {line.line for line in counters.lines if line.warp_instructions}
    return all(line.line in executed for line in facts.lines if Kind.TENSOR in mix(line.opcodes))


def scale(facts: DisassembledKernel, counters: Counters) -> float:
    """By how much more the ranked size is than what was counted: in blocks, so that those at an
    edge, which are partly outside, count for what they do. Of blocks that share the work out, and
    whose tile of the launch is larger than all of what was counted, the number says nothing."""
    launch, shape = facts.launch, counters.shape
    if counters.blocks_depend and (launch.tile_rows > shape.M or launch.tile_columns > shape.K):
        return RANKED.shape.flop / shape.flop
    columns, rows, _ = launch.grid(RANKED.shape.M, RANKED.shape.K)
    return columns * rows / counters.counted_blocks * RANKED.shape.N / shape.N


def l1_clocks(line: LineCounters) -> int:
    """Passes of shared memory and of the L1 cache, which share one data path. What is copied from
    one to the other goes through it once."""
    return line.shared_wavefronts + line.global_passes - line.copy_passes


def fma_warps(counters: Counters) -> float:
    """Warp instructions that add or multiply float32."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if opcode.endswith(".f32") and opcode.split(".")[0] in ("fma", "add", "sub", "mul")
    )
    return threads / WARP


def tensor_work(counters: Counters) -> dict[tuple[str, bool], float]:
    """Multiply-adds of matrix instructions, by the type of their inputs and whether warp groups
    issue them."""
    work: dict[tuple[str, bool], float] = {}
    for opcode, threads in counters.instructions.items():
        found = matrix_instruction(opcode)
        if found is not None:
            kind, macs, together = found
            key = (kind, together > WARP)
            work[key] = work.get(key, 0.0) + threads / together * macs
    return work


def tensor_warps(counters: Counters) -> float:
    """Warp instructions on the tensor cores."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if matrix_instruction(opcode) is not None
    )
    return threads / WARP


def hot_loop(facts: DisassembledKernel, counters: Counters | None) -> CodeLoop | None:
    """The loop that computes most: with the most tensor instructions of the types that are
    executed, for a small problem may have a loop of its own; else with the most multiply-adds."""
    executed = {kind for kind, _ in tensor_work(counters)} if counters is not None else set()

    def computing(loop: CodeLoop) -> int:
        return sum(
            count
            for opcode, count in loop.opcodes.items()
            if (matrix_type(opcode) in executed if executed else kind_of(opcode) is Kind.FMA)
        )

    return max(filter(computing, facts.loops), key=computing, default=None)


def issued_warps(facts: DisassembledKernel, counters: Counters) -> float:
    """Warp instructions of machine code: those counted are of PTX, which the compiler shortens, so
    the loop that computes says how many there are for each multiply-add. Where blocks share the
    work out, it says the same for each matrix instruction: part of what was counted, such as
    splitting A and B, grows less than the products do."""
    loop = hot_loop(facts, counters)
    counted = float(counters.warp_instructions)
    if loop is None:
        return counted
    kinds = mix(loop.opcodes)
    if not tensor_work(counters):
        return fma_warps(counters) * sum(kinds.values()) / kinds[Kind.FMA]
    if not counters.blocks_depend:
        return counted
    return min(counted, tensor_warps(counters) * sum(kinds.values()) / kinds[Kind.TENSOR])


def blocks_and_waves(facts: DisassembledKernel, gpu: Gpu) -> tuple[int, float]:
    columns, rows, _ = facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
    at_once = max(1, facts.occupancy.blocks) * gpu.multiprocessors
    return columns * rows, columns * rows / at_once


def fill(facts: DisassembledKernel, gpu: Gpu) -> float:
    """What partly filled last waves leave of the multiprocessors' time."""
    _, waves = blocks_and_waves(facts, gpu)
    return waves / -(-waves // 1)


def workload(facts: DisassembledKernel, counters: Counters, gpu: Gpu) -> Workload:
    """From the counters of some blocks at a small size, in proportion to the useful work."""
    ratio = scale(facts, counters) / gpu.multiprocessors
    shape = RANKED.shape
    bytes_once = 4 * (shape.M * shape.N + shape.N * shape.K + shape.M * shape.K)
    first = sum(line.global_first_sectors for line in counters.lines) * SECTOR
    clocks = {
        Unit.L1: sum(l1_clocks(line) for line in counters.lines) * ratio / LSU_WAVEFRONTS,
        Unit.FMA: fma_warps(counters) * WARP / gpu.fp32_lanes * ratio,
        Unit.ISSUE: issued_warps(facts, counters) / WARP_INSTRUCTIONS * ratio,
        Unit.L2: first / L2_BYTES * ratio,
        Unit.DRAM: bytes_once / (gpu.memory_gb_per_s * 1e6) * gpu.clocks_per_ms,
    }
    tensor = 0.0
    for (kind, by_groups), macs in tensor_work(counters).items():
        peak = gpu.tensor_macs(kind)
        if peak is not None:
            share = 1.0 if by_groups or gpu.number < 90 else MMA_SYNC_SHARE
            tensor += macs * ratio / (peak * share)
    if tensor:
        clocks[Unit.TENSOR] = tensor
    return Workload(clocks, 1.0 if counters.blocks_depend else fill(facts, gpu))
