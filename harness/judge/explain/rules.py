"""The rules that turn evidence into advice: each a class with a name and a sentence why.

A rule speaks only of what costs time: what it would save is taken off the unit that it loads, and
where another unit is the busier one, nothing is saved and nothing is said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import ClassVar

from harness.judge import figures
from harness.judge.explain.explanation import Advice, Unit
from harness.judge.explain.gpu import MMA_SYNC_SHARE, Gpu
from harness.judge.explain.opcodes import Kind, kind_of, mix
from harness.judge.explain.workload import (
    Workload,
    blocks_and_waves,
    fma_warps,
    hot_loop,
    l1_clocks,
    scale,
    tensor_work,
    workload,
)
from harness.protocol.profile import Profile
from harness.protocol.report import CodeLoop, Counters, DisassembledKernel, LineCounters
from problem.cases import RANKED
from problem.launcher import BLOCK

WORTH_SAYING = 1.05
"""Advice that promises less is not given: the model is not that exact."""

MAX_FINDINGS = 3


@dataclass(frozen=True)
class Evidence:
    """What the rules look at.

    blocks_share_work: the blocks depend on one another, so that they need not be equally long.
    """

    facts: DisassembledKernel
    counters: Counters
    gpu: Gpu
    blocks_share_work: bool = False
    profile: Profile | None = None
    """What the GPU's own counters say."""

    @cached_property
    def work(self) -> Workload:
        return workload(self.facts, self.counters, self.gpu)

    @cached_property
    def loop(self) -> CodeLoop | None:
        return hot_loop(self.facts, self.counters)

    @cached_property
    def loop_mix(self) -> dict[Kind, int]:
        return mix(self.loop.opcodes) if self.loop else {}

    @property
    def uses_tensor_cores(self) -> bool:
        return bool(tensor_work(self.counters))

    def most_in_loop(self, kind: Kind) -> int | None:
        """The line that became most instructions of a kind, of those that the loop spans."""
        if self.loop is None or self.loop.first_line is None or self.loop.last_line is None:
            return None
        within = range(self.loop.first_line, self.loop.last_line + 1)
        counts = {
            line.line: mix(line.opcodes).get(kind, 0)
            for line in self.facts.lines
            if line.line in within
        }
        return max(counts, key=lambda line: counts[line], default=None)

    def clocks(self, passes: float) -> float:
        """Of one multiprocessor at the ranked size, for passes that were counted."""
        return passes * scale(self.facts, self.counters) / self.gpu.multiprocessors

    def costliest(self, cost: Callable[[LineCounters], float]) -> tuple[LineCounters, float] | None:
        """The line with most of the cost, and the cost of all lines."""
        lines = [line for line in self.counters.lines if cost(line) > 0]
        if not lines:
            return None
        return max(lines, key=cost), sum(cost(line) for line in lines)


@dataclass(frozen=True, slots=True)
class Saving:
    """What a rule found: its sentence, and the work that would be left."""

    message: str
    figure: float
    ideal: float
    left: Workload
    line: int | None = None
    see: str | None = None
    """The file that shows it, where another than the rule's does."""


class Rule(ABC):
    """One kind of advice."""

    name: ClassVar[str]
    why: ClassVar[str]
    """One sentence."""
    remedy: ClassVar[str]
    see: ClassVar[str | None]
    """The file of the ladder that shows it."""

    @abstractmethod
    def look(self, evidence: Evidence) -> Saving | None:
        """What the rule finds, if anything."""


class Uncoalesced(Rule):
    name = "uncoalesced"
    why = "The L1 cache looks up one line of 128 bytes a clock, however few of them are wanted."
    remedy = "let neighbouring threads read neighbouring addresses"
    see = "03_coalesced"

    PASSES = 1.5
    """A request of one float a thread, at best: in a block of 16x16 threads a warp lies over two
    rows, so that of two operands one comes out of two lines and the other out of one."""

    ROWS = 2
    """Of such a block under a warp: what all threads of a row read comes out of two lines."""

    SECTORS_OF_A_LINE = 4

    def look(self, evidence: Evidence) -> Saving | None:
        def wasted(line: LineCounters) -> float:
            few = line.global_passes <= self.ROWS * line.global_requests
            if few or line.global_sectors < 2 * line.global_min_sectors:
                return 0.0
            full = line.global_min_sectors / self.SECTORS_OF_A_LINE
            least = max(self.PASSES * line.global_requests, full)
            return max(line.global_passes - least, 0.0)

        found = evidence.costliest(wasted)
        if found is None:
            return None
        line, passes = found
        figure = line.global_sectors / line.global_requests
        ideal = line.global_min_sectors / line.global_requests
        share = line.global_passes / max(1, sum(map(l1_clocks, evidence.counters.lines)))
        return Saving(
            f"a warp's request touches {figure:.1f} sectors where {ideal:.1f} would hold as much, "
            f"{figures.percent(share)} of all work of the L1 cache",
            figure,
            ideal,
            evidence.work.without(Unit.L1, evidence.clocks(passes)),
            line.line,
        )


class ReadAgain(Rule):
    name = "read-again"
    why = "What a block reads from global memory more than once could wait in shared memory."
    remedy = "keep a tile of A and of B in shared memory"
    see = "02_shared_tile"

    OFTEN = 8
    LOAD = 0.75
    """Wavefronts that take the place of a request: of two operands one is read a float at a time,
    the other four at a time, in two wavefronts."""

    def look(self, evidence: Evidence) -> Saving | None:
        if evidence.loop_mix.get(Kind.SHARED_LOAD) or not evidence.loop_mix.get(Kind.GLOBAL_LOAD):
            return None

        def cost(line: LineCounters) -> float:
            often = line.global_sectors >= self.OFTEN * max(1, line.global_first_sectors)
            return float(line.global_passes) if often else 0.0

        found = evidence.costliest(cost)
        if found is None:
            return None
        line, passes = found
        again = [each for each in evidence.counters.lines if cost(each) > 0]
        tiles = sum(each.global_first_sectors for each in again) / 4 * 2  # read, and stored
        loads = sum(self.LOAD * each.global_requests for each in again)
        figure = line.global_sectors / max(1, line.global_first_sectors)
        return Saving(
            f"a block reads each sector {figure:.0f} times from global memory",
            figure,
            1.0,
            evidence.work.without(Unit.L1, evidence.clocks(passes - tiles - loads)),
            line.line,
        )


class BankConflicts(Rule):
    name = "bank-conflicts"
    why = "Lanes that want different words of one bank are served one after the other."
    remedy = "pad the rows, or let a thread's columns lie further apart"
    see = "10_no_bank_conflicts"

    def look(self, evidence: Evidence) -> Saving | None:
        def wasted(line: LineCounters) -> float:
            return float(line.shared_wavefronts - line.shared_min_wavefronts)

        found = evidence.costliest(wasted)
        if found is None:
            return None
        line, wavefronts = found
        figure = line.shared_wavefronts / line.shared_requests
        ideal = line.shared_min_wavefronts / line.shared_requests
        return Saving(
            f"shared memory takes {figure:.1f} wavefronts a request where {ideal:.1f} would do",
            figure,
            ideal,
            evidence.work.without(Unit.L1, evidence.clocks(wavefronts)),
            line.line,
        )


class FewProductsPerLoad(Rule):
    name = "few-products-per-load"
    why = (
        "A value that is loaded from shared memory into a register serves as many products as the "
    )
    why += "thread has outputs in that row or column."
    remedy = "give each thread a tile of outputs, 8x8 of them in the end"
    see = "06_outputs_per_thread to 10_no_bank_conflicts"

    SEVERAL_OUTPUTS = "08_block_tile_2d to 10_no_bank_conflicts"
    """What shows it to those who give a thread several outputs already."""

    IDEAL = 0.25
    """Wavefronts for each multiply-add of a warp with 8x8 outputs a thread."""

    def look(self, evidence: Evidence) -> Saving | None:
        fma = fma_warps(evidence.counters)
        if evidence.uses_tensor_cores or not fma:
            return None
        if not evidence.loop_mix.get(Kind.SHARED_LOAD):
            return None
        loads = [each for each in evidence.counters.lines if each.shared_requests]
        least = sum(each.shared_min_wavefronts for each in loads)
        if least < 2 * self.IDEAL * fma:
            return None
        line = max(loads, key=lambda each: each.shared_min_wavefronts)
        left = evidence.work.without(Unit.L1, evidence.clocks(least - self.IDEAL * fma))
        copies = evidence.loop_mix.get(Kind.SHARED_LOAD, 0) / evidence.loop_mix[Kind.FMA]
        outputs = evidence.facts.launch.tile_rows * evidence.facts.launch.tile_columns
        issue = left.clocks[Unit.ISSUE]
        saved = issue * (1 - 1 / (1 + copies)) if copies > self.IDEAL else 0.0
        return Saving(
            f"{least / fma:.1f} wavefronts of shared memory for each multiply-add of a warp, where "
            f"{self.IDEAL} would do",
            least / fma,
            self.IDEAL,
            left.without(Unit.ISSUE, saved),
            line.line,
            self.SEVERAL_OUTPUTS if outputs > prod(BLOCK) else None,
        )


class NarrowLoads(Rule):
    name = "narrow-loads"
    why = "One 128-bit load brings what takes four 32-bit loads, in a fraction of the instructions."
    remedy = "lay the tiles so that a thread reads four floats at a time, A transposed"
    see = "09_vector_loads"

    def look(self, evidence: Evidence) -> Saving | None:
        loop = evidence.loop
        fma = evidence.loop_mix.get(Kind.FMA, 0)
        loads = evidence.loop_mix.get(Kind.SHARED_LOAD, 0)
        if loop is None or evidence.uses_tensor_cores or not loads or fma < 2 * loads:
            return None
        narrow = loop.opcodes.get("LDS", 0)
        if 2 * narrow <= loads:
            return None
        saved = 0.75 * narrow / fma * fma_warps(evidence.counters)
        left = evidence.work.without(Unit.L1, evidence.clocks(saved / 2))
        issue = evidence.work.clocks[Unit.ISSUE] * 0.75 * narrow / sum(loop.opcodes.values())
        line = max(evidence.counters.lines, key=lambda each: each.shared_requests)
        return Saving(
            f"{narrow} of {loads} shared loads of the loop bring 4 bytes a thread",
            narrow / loads,
            0.0,
            left.without(Unit.ISSUE, issue),
            line.line,
        )


class Overhead(Rule):
    name = "overhead"
    why = "Every instruction that does not multiply takes an issue slot from one that would."
    remedy = "fewer loads for each product (16x8 outputs a thread), addresses out of the loop"
    see = "15_thread_tile_16x8"

    IDEAL = 0.94
    """Share of multiply-adds in the loop of 15_thread_tile_16x8."""

    def look(self, evidence: Evidence) -> Saving | None:
        fma = evidence.loop_mix.get(Kind.FMA, 0)
        everything = sum(evidence.loop_mix.values())
        if evidence.uses_tensor_cores or not fma or evidence.work.busiest is not Unit.ISSUE:
            return None
        share = fma / everything
        issue = evidence.work.clocks[Unit.ISSUE]
        return Saving(
            f"{figures.percent(share)} of the instructions in the loop are multiply-adds, where "
            f"{figures.percent(self.IDEAL)} is possible",
            share,
            self.IDEAL,
            evidence.work.without(Unit.ISSUE, max(issue * (1 - share / self.IDEAL), 0.0)),
            evidence.most_in_loop(Kind.OTHER),
        )


class Spills(Rule):
    name = "spills"
    why = "What does not fit into the registers goes through the L1 cache, there and back."
    remedy = "fewer outputs a thread, or a larger register budget by __launch_bounds__"
    see = None

    def look(self, evidence: Evidence) -> Saving | None:
        used = evidence.facts.resources
        spilled = evidence.loop_mix.get(Kind.LOCAL, 0)
        fma = evidence.loop_mix.get(Kind.FMA, 0)
        if not used.spill_load_bytes + used.spill_store_bytes or not spilled or not fma:
            return None
        warps = spilled / fma * fma_warps(evidence.counters)
        return Saving(
            f"{spilled} of the loop's instructions move spilled registers "
            f"({used.spill_store_bytes} B stored, {used.spill_load_bytes} B loaded a thread)",
            spilled,
            0,
            evidence.work.without(Unit.ISSUE, evidence.clocks(warps / 4)),
            evidence.most_in_loop(Kind.LOCAL),
        )


class LastWave(Rule):
    name = "last-wave"
    why = "In the last wave of blocks some multiprocessors have nothing to do."
    remedy = "split the last tiles among the idle multiprocessors, or choose another tile"
    see = "17_split_tail"

    def look(self, evidence: Evidence) -> Saving | None:
        if evidence.blocks_share_work:
            return None
        blocks, waves = blocks_and_waves(evidence.facts, evidence.gpu)
        return Saving(
            f"{blocks} blocks fill the GPU {waves:.2f} times, the last wave "
            f"{figures.percent(waves % 1 or 1)}",
            waves,
            float(-(-waves // 1)),
            replace(evidence.work, fill=1.0),
        )


class TensorCores(Rule):
    name = "tensor-cores"
    why = (
        "Where the FP32 units are the limit, only other units are faster: three products of halves "
    )
    why += "keep the accuracy of FP32."
    remedy = "split each float in two or three BF16 and multiply these on the tensor cores"
    see = "31_mma_bf16x3 to 33_wgmma_two_phase"

    BUSY = 0.73
    REACHED = 0.86
    """Of the peak at the highest clock: under this load the clock falls (930 of 1070 TFLOP/s were
    measured on an H100 with nothing loaded)."""

    def look(self, evidence: Evidence) -> Saving | None:
        if evidence.uses_tensor_cores or evidence.gpu.number != 90:
            return None
        peak = evidence.gpu.tensor_macs("BF16")
        busy = evidence.work.clocks[Unit.FMA] / evidence.work.total
        if peak is None or busy < self.BUSY:
            return None
        macs = 3 * RANKED.shape.flop / 2 / evidence.gpu.multiprocessors
        return Saving(
            f"the FP32 units are busy {figures.percent(busy)} of the time, which leaves at most "
            f"{1 / busy:.2f}× to them; the tensor cores do nothing",
            busy,
            1.0,
            Workload({Unit.TENSOR: macs / peak / self.REACHED}),
        )


class OldTensorPath(Rule):
    name = "mma-sync"
    why = "On sm_90 mma.sync reaches about 63 % of the tensor cores' peak; wgmma reaches all of it."
    remedy = "wgmma, with A and B in shared memory"
    see = "32_wgmma_split_while_loading"

    def look(self, evidence: Evidence) -> Saving | None:
        work = evidence.work
        if evidence.gpu.number != 90 or Unit.TENSOR not in work.clocks:
            return None
        if any(by_groups for _, by_groups in tensor_work(evidence.counters)):
            return None
        tensor = work.clocks[Unit.TENSOR]
        loads = sum(
            count
            for opcode, count in (evidence.loop.opcodes if evidence.loop else {}).items()
            if kind_of(opcode) is Kind.SHARED_LOAD
        )
        left = work.without(Unit.TENSOR, tensor * (1 - MMA_SYNC_SHARE))
        everything = sum(evidence.loop_mix.values()) or 1
        return Saving(
            "the products go through mma.sync, warp by warp",
            MMA_SYNC_SHARE,
            1.0,
            left.without(Unit.ISSUE, work.clocks[Unit.ISSUE] * loads / everything),
        )


class SlowTensorType(Rule):
    name = "tf32-products"
    why = "The tensor cores multiply BF16 and FP16 at twice the rate of TF32."
    remedy = "split each float in two or three BF16, or in two FP16 with a scale"
    see = "31_mma_bf16x3"

    def look(self, evidence: Evidence) -> Saving | None:
        work = tensor_work(evidence.counters)
        slow = work.get(("TF32", False), 0.0) + work.get(("TF32", True), 0.0)
        peak, faster = (evidence.gpu.tensor_macs(kind) for kind in ("TF32", "BF16"))
        if not slow or peak is None or faster is None:
            return None
        share = slow / sum(work.values())
        saved = evidence.work.clocks[Unit.TENSOR] * share * (1 - peak / faster)
        return Saving(
            f"{slow * scale(evidence.facts, evidence.counters) * 2 / RANKED.shape.flop:.2g} "
            "products of TF32 for each useful one",
            peak,
            faster,
            evidence.work.without(Unit.TENSOR, saved),
        )


class EqualProducts(Rule):
    name = "equal-products"
    why = "Products with the low parts only correct the first, and need a few bits of each factor."
    remedy = "take FP16 for the first product and INT8, at twice the rate, for the corrections"
    see = "35_wgmma_fp16_int8 and 36_wgmma_one_accumulator"

    MANY = 2.5
    """Products for each useful one from which two or more are corrections."""

    def look(self, evidence: Evidence) -> Saving | None:
        work = tensor_work(evidence.counters)
        kinds = {kind for kind, by_groups in work if by_groups}
        if len(kinds) != 1 or not kinds <= {"BF16", "FP16"}:
            return None
        kind = kinds.pop()
        peak, faster = (evidence.gpu.tensor_macs(each) for each in (kind, "INT8"))
        macs = sum(work.values()) * scale(evidence.facts, evidence.counters)
        products = macs * 2 / RANKED.shape.flop
        if peak is None or faster is None or products < self.MANY:
            return None
        saved = (products - 1) / products * (1 - peak / faster)
        return Saving(
            f"{products:.2g} products of {kind} for each useful one, of which all but one are "
            "corrections",
            products,
            1 + (products - 1) * peak / faster,
            evidence.work.without(Unit.TENSOR, evidence.work.clocks[Unit.TENSOR] * saved),
        )


class SplitInLoop(Rule):
    name = "split-in-loop"
    why = "Splitting floats beside the products takes issue slots, for every tile again."
    remedy = "split A and B once, in a phase of its own, and let the products read the parts"
    see = "33_wgmma_two_phase"

    def look(self, evidence: Evidence) -> Saving | None:
        tensor = evidence.loop_mix.get(Kind.TENSOR, 0)
        others = sum(evidence.loop_mix.values()) - tensor
        if not tensor or others < 32 * tensor or Unit.TENSOR not in evidence.work.clocks:
            return None
        if not evidence.loop_mix.get(Kind.GLOBAL_LOAD):  # nothing comes here to be split
            return None
        work = evidence.work.without(Unit.ISSUE, 0.9 * evidence.work.clocks[Unit.ISSUE])
        l1 = 0.5 * work.clocks[Unit.L1]
        return Saving(
            f"{others} other instructions in the loop for {tensor} matrix instructions",
            others / tensor,
            32.0,
            work.without(Unit.L1, l1),
            evidence.loop.first_line if evidence.loop else None,
        )


class Waits(Rule):
    name = "waits"
    why = "Where no unit is busy, warps wait for global memory, and nobody else has work."
    remedy = "fetch the next tile while this one is multiplied: two buffers, or async copies"
    see = "11_double_buffering"

    WAITING = 0.15
    BUSY = 0.85

    def look(self, evidence: Evidence) -> Saving | None:
        profile = evidence.profile
        if profile is None or evidence.loop_mix.get(Kind.COPY):  # fetched ahead already
            return None
        busiest = max(
            profile.l1_active, profile.fma_active, profile.issue_active, profile.tensor_active
        )
        samples = sum(line.samples for line in profile.lines)
        waiting = {
            line.line: line.stall_samples.get("long_scoreboard", 0) for line in profile.lines
        }
        share = sum(waiting.values()) / samples if samples else 0.0
        if share < self.WAITING or busiest > self.BUSY:
            return None
        gain = min(1 / (1 - share), 1 / busiest)
        return Saving(
            f"{figures.percent(share)} of the warps' time is spent waiting for global memory, and "
            f"no unit is busier than {figures.percent(busiest)}",
            share,
            0.0,
            replace(evidence.work, fill=evidence.work.fill * gain),
            max(waiting, key=lambda line: waiting[line]),
        )


RULES: tuple[Rule, ...] = (
    Uncoalesced(),
    ReadAgain(),
    BankConflicts(),
    FewProductsPerLoad(),
    NarrowLoads(),
    Overhead(),
    Spills(),
    LastWave(),
    TensorCores(),
    OldTensorPath(),
    SlowTensorType(),
    EqualProducts(),
    SplitInLoop(),
    Waits(),
)


def advice(evidence: Evidence, rules: tuple[Rule, ...] = RULES) -> tuple[Advice, ...]:
    """What is worth saying, the dearest first."""
    found = []
    for rule in rules:
        saving = rule.look(evidence)
        if saving is None:
            continue
        gain = evidence.work.total / saving.left.total
        worth = WORTH_SAYING if not isinstance(rule, LastWave) else 1.02
        if gain < worth:
            continue
        found.append(
            Advice(
                rule=rule.name,
                line=saving.line,
                message=saving.message,
                figure=saving.figure,
                ideal=saving.ideal,
                cost=1 - 1 / gain,
                gain=gain,
                remedy=rule.remedy,
                see=saving.see or rule.see,
            )
        )
    return tuple(sorted(found, key=lambda each: -each.gain)[:MAX_FINDINGS])
