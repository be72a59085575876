"""How long each unit of the GPU is busy with a kernel at the ranked size, from what is known of it
without running it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.compiling.occupancy import WARP
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import (
    L2_BYTES,
    MMA_SYNC_SHARE,
    SUSTAINED,
    WARP_INSTRUCTIONS,
    Gpu,
)
from harness.judge.explain.latency import iteration_clocks
from harness.judge.explain.opcodes import Kind, kind_of, matrix_instruction, matrix_type, mix
from harness.judge.explain.pipelines import pipeline_clocks
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


def active_share(counters: Counters) -> float:
    """Return the mean share of a warp's lanes that are active: less than 1 where it diverges."""
    warps = sum(line.warp_instructions for line in counters.lines)
    threads = sum(line.instructions for line in counters.lines)
    return min(1.0, threads / (WARP * warps)) if warps else 1.0


def fma_warps(counters: Counters) -> float:
    """Return what warp instructions that add or multiply float32 would be without divergence."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if opcode.endswith(".f32") and opcode.split(".")[0] in ("fma", "add", "sub", "mul")
    )
    return threads / WARP


def fp64_warps(counters: Counters) -> float:
    """Return the warp instructions that add or multiply float64."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if opcode.endswith(".f64") and opcode.split(".")[0] in ("fma", "add", "sub", "mul")
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

    computes = Kind.FMA
    if counters is not None and fp64_warps(counters) > fma_warps(counters):
        computes = Kind.FP64

    def computing(loop: CodeLoop) -> int:
        return sum(
            count
            for opcode, count in loop.opcodes.items()
            if (matrix_type(opcode) in executed if executed else kind_of(opcode) is computes)
        )

    return max(filter(computing, facts.loops), key=computing, default=None)


_MACS = {"1684": 512, "1688": 1024, "16816": 2048, "16832": 4096}
"""Multiply-adds of a matrix instruction of machine code, by the shape that its name ends in."""


def iterations(facts: DisassembledKernel, counters: Counters) -> float:
    """Return how often the warps that were counted went through the loop that computes."""
    loop = hot_loop(facts, counters)
    if loop is None:
        return 0.0
    kinds = mix(loop.opcodes)
    by_warp = {
        kind: macs for (kind, by_groups), macs in tensor_work(counters).items() if not by_groups
    }
    if by_warp:
        macs = sum(
            count * next((_MACS[word] for word in opcode.split(".") if word in _MACS), 0)
            for opcode, count in loop.opcodes.items()
            if kind_of(opcode) is Kind.TENSOR
        )
        if macs:
            return sum(by_warp.values()) / macs
    if tensor_work(counters):
        return tensor_warps(counters) / kinds[Kind.TENSOR]
    if fp64_warps(counters) > fma_warps(counters):
        return fp64_warps(counters) / kinds[Kind.FP64] / active_share(counters)
    return fma_warps(counters) / kinds[Kind.FMA] / active_share(counters)


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
        return iterations(facts, counters) * sum(kinds.values())
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
        Unit.L1: sum(l1_clocks(line) for line in counters.lines) * ratio / gpu.l1_passes,
        Unit.FMA: fma_warps(counters) * WARP / gpu.fp32_lanes * ratio / active_share(counters),
        Unit.ISSUE: issued_warps(facts, counters) / WARP_INSTRUCTIONS * ratio,
        Unit.L2: first / L2_BYTES * ratio,
        Unit.DRAM: bytes_once / (gpu.memory_gb_per_s * 1e6) * gpu.clocks_per_ms,
    }
    _add_loop(clocks, facts, counters, gpu)
    tensor = 0.0
    for (kind, by_groups), macs in tensor_work(counters).items():
        peak = gpu.tensor_macs(kind)
        if peak is not None:
            share = 1.0 if gpu.number != 90 else SUSTAINED if by_groups else MMA_SYNC_SHARE
            tensor += macs * ratio / (peak * share)
    if tensor:
        clocks[Unit.TENSOR] = tensor
    return Workload(clocks, 1.0 if counters.blocks_depend else fill(facts, gpu))


def _add_loop(
    clocks: dict[Unit, float], facts: DisassembledKernel, counters: Counters, gpu: Gpu
) -> None:
    """Add what the machine code of the loop that computes keeps busy besides."""
    loop = hot_loop(facts, counters)
    if loop is None:
        return
    times = iterations(facts, counters) * scale(facts, counters) / gpu.multiprocessors
    for unit, busy in pipeline_clocks(loop.opcodes, gpu).items():
        clocks[unit] = times * busy
    spilled = times * local_passes(loop.opcodes)
    clocks[Unit.L1] += spilled / gpu.l1_passes
    home = spills_to(facts, gpu)
    if home is not Unit.L1:
        clocks[Unit.L2] += spilled * LINE / L2_BYTES
    if home is Unit.DRAM:
        clocks[Unit.DRAM] += spilled * LINE / gpu.memory_bytes_per_clock
    if loop.waits and not counters.blocks_depend and facts.occupancy.warps:
        one = iteration_clocks(loop, home is not Unit.L1)
        clocks[Unit.LATENCY] = times * one / facts.occupancy.warps


LINE = 128


def local_passes(opcodes: Mapping[str, int]) -> int:
    """Return the passes of the L1 cache that instructions take for local memory."""
    return sum(
        count * (4 if "128" in opcode else 2 if ".64" in opcode else 1)
        for opcode, count in opcodes.items()
        if kind_of(opcode) is Kind.LOCAL
    )


def spills_to(facts: DisassembledKernel, gpu: Gpu) -> Unit:
    """Return the memory that has room for the local memory of all resident threads."""
    occupied = facts.occupancy.blocks * facts.resources.shared_bytes
    bytes_used = facts.occupancy.warps * WARP * facts.resources.stack_bytes
    if bytes_used <= gpu.l1_bytes - occupied:
        return Unit.L1
    return Unit.L2 if bytes_used * gpu.multiprocessors <= gpu.l2_bytes else Unit.DRAM
