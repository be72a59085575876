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

from harness.compiling.occupancy import WARP
from harness.judge import figures
from harness.judge.explain.explanation import Advice, Unit
from harness.judge.explain.gpu import (
    INSTRUCTION_CACHE,
    L2_BYTES,
    MMA_SYNC_SHARE,
    SUSTAINED,
    WARP_INSTRUCTIONS,
    Gpu,
)
from harness.judge.explain.latency import iteration
from harness.judge.explain.opcodes import Kind, kind_of, mix
from harness.judge.explain.pipelines import is_double_conversion, is_special, pipeline_clocks
from harness.judge.explain.workload import (
    FENCE_PASSES,
    LINE,
    SECTOR,
    Workload,
    active_share,
    blocks_and_waves,
    fences,
    fma_warps,
    hot_loop,
    instructions_around,
    iterations,
    l1_clocks,
    local_passes,
    loop_bytes,
    memory_latency,
    new_sectors,
    resident_blocks,
    scale,
    spills_to,
    stores_in,
    tensor_work,
    without_merged_loads,
    workload,
)
from harness.protocol.report import CodeLoop, Counters, DisassembledKernel, LineCounters, Producer
from problem.cases import RANKED
from problem.launcher import BLOCK

WORTH_SAYING = 1.05
"""Advice that promises less is not given: the model is not that exact."""

MAX_FINDINGS = 3


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

    @property
    def rounds(self) -> float:
        """How often a multiprocessor's warps go through the loop at the ranked size."""
        times = iterations(self.facts, self.counters) * scale(self.facts, self.counters)
        return times / self.gpu.multiprocessors

    def with_loop(self, opcodes: dict[str, int]) -> Workload:
        """Return the work that is left if the loop has only these instructions.

        A warp waits in proportion to them, or less.
        """
        assert self.loop is not None
        before, left = self.loop.opcodes, self.work
        saved: dict[Unit, float] = {}
        kept = pipeline_clocks(opcodes, self.gpu)
        for unit, busy in pipeline_clocks(before, self.gpu).items():
            saved[unit] = self.rounds * (busy - kept.get(unit, 0.0))
        share = sum(opcodes.values()) / sum(before.values())
        saved[Unit.ISSUE] = self.work.clocks[Unit.ISSUE] * (1 - share)
        passes = self.rounds * (local_passes(before) - local_passes(opcodes))
        saved[Unit.L1] = passes / self.gpu.l1_passes
        home = spills_to(self.facts, self.gpu)
        stores = local_passes(before, ("STL",)) - local_passes(opcodes, ("STL",))
        on_to_l2 = self.rounds * stores if home is Unit.L1 else passes
        saved[Unit.L2] = on_to_l2 * LINE / L2_BYTES
        if passes and home is Unit.DRAM:
            saved[Unit.DRAM] = passes * LINE / self.gpu.memory_bytes_per_clock
        if Unit.LATENCY in left.clocks:
            saved[Unit.LATENCY] = left.clocks[Unit.LATENCY] * (1 - share)
        for unit, clocks in saved.items():
            left = left.without(unit, clocks)
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

    def most(self, wanted: Callable[[str], bool]) -> int | None:
        """Return the line that became most of the wanted instructions."""
        counts = {
            line.line: sum(count for opcode, count in line.opcodes.items() if wanted(opcode))
            for line in self.facts.lines
        }
        found = max(counts, key=lambda line: counts[line], default=None)
        return found if found is not None and counts[found] else None

    def clocks(self, passes: float) -> float:
        """Return the clocks of one multiprocessor at the ranked size for counted passes."""
        per_clock = self.gpu.multiprocessors * self.gpu.l1_passes
        return passes * scale(self.facts, self.counters) / per_clock

    def costliest(self, cost: Callable[[LineCounters], float]) -> tuple[LineCounters, float] | None:
        """Return the line with most of the cost, and the cost of all lines."""
        lines = [line for line in self.counters.lines if cost(line) > 0]
        if not lines:
            return None
        return max(lines, key=cost), sum(cost(line) for line in lines)


@dataclass(frozen=True, slots=True)
class Saving:
    """The finding of a rule: its sentence, and the work that would be left."""

    message: str
    figure: float
    ideal: float
    left: Workload
    line: int | None = None
    see: str | None = None
    """The file that shows it, if it is not the file of the rule."""
    remedy: str | None = None
    """The remedy, if it is not the remedy of the rule."""
    nothing_to_see: bool = False
    """Whether no file shows the remedy."""


def less_waiting(work: Workload, share: float) -> Workload:
    """Return the work with a share of its latency, where there is one."""
    waited = work.clocks.get(Unit.LATENCY, 0.0)
    return work.without(Unit.LATENCY, waited * (1 - share)) if waited else work


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
        """Return the finding of the rule, if any."""


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

    LATENCY_LEFT = 0.42
    """The share of the latency of 03_coalesced that is left in 02_shared_tile."""

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
        # Sectors of arrays that are no arguments are not told apart.
        message, figure = "the products read an array that lies in a variable,", 1.0
        if line.global_first_sectors:
            figure = line.global_sectors / line.global_first_sectors
            message = f"a block reads each sector {figure:.0f} times"
        return Saving(
            f"{message} from global memory",
            figure,
            1.0,
            less_waiting(
                evidence.work.without(Unit.L1, evidence.clocks(passes - tiles - loads)),
                self.LATENCY_LEFT,
            ),
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
    see = "08_block_tile_2d"

    SEVERAL_OUTPUTS = "09_vector_loads"
    """The file that shows it to authors whose threads have several outputs already."""

    IDEAL, WITH_VECTORS = 0.25, 12 / 64
    """Wavefronts for each multiply-add of a warp with 8x8 outputs a thread, where most loads bring
    one float a thread, and where they bring four: a load of A takes two, and one of B four."""

    LATENCY_LEFT = 0.27
    """The share of the latency of 02_shared_tile that is left in 06_outputs_per_thread: one wait
    serves the products of all outputs."""

    def look(self, evidence: Evidence) -> Saving | None:
        fma = fma_warps(evidence.counters)
        if evidence.uses_tensor_cores or not fma:
            return None
        if not evidence.loop_mix.get(Kind.SHARED_LOAD):
            return None
        opcodes = evidence.loop.opcodes if evidence.loop else {}
        narrow = 2 * opcodes.get("LDS", 0) > evidence.loop_mix[Kind.SHARED_LOAD]
        ideal = self.IDEAL if narrow else self.WITH_VECTORS
        loads = [each for each in evidence.counters.lines if each.shared_requests]
        least = sum(each.shared_min_wavefronts for each in loads)
        if least < 2 * ideal * fma:
            return None
        line = max(loads, key=lambda each: each.shared_min_wavefronts)
        left = evidence.work.without(Unit.L1, evidence.clocks(least - ideal * fma))
        left = less_waiting(left, self.LATENCY_LEFT)
        copies = evidence.loop_mix.get(Kind.SHARED_LOAD, 0) / evidence.loop_mix[Kind.FMA]
        outputs = evidence.facts.launch.tile_rows * evidence.facts.launch.tile_columns
        issue = left.clocks[Unit.ISSUE]
        saved = issue * (1 - 1 / (1 + copies)) if copies > self.IDEAL else 0.0
        return Saving(
            f"{least / fma:.2g} wavefronts of shared memory for each multiply-add of a warp, where "
            f"{ideal:.2g} would do",
            least / fma,
            ideal,
            left.without(Unit.ISSUE, saved),
            line.line,
            self.SEVERAL_OUTPUTS if outputs > prod(BLOCK) else None,
        )


class NarrowLoads(Rule):
    name = "narrow-loads"
    why = "One 128-bit load brings what takes four 32-bit loads, in a fraction of the instructions."
    remedy = "lay the tiles so that a thread reads four floats at a time, A transposed"
    see = "09_vector_loads"

    FEWER = 0.75
    """The share of the instructions that is saved: one takes the place of four."""

    @staticmethod
    def _copies_are_narrow(evidence: Evidence, loop: CodeLoop) -> bool:
        """Return whether the tiles are copied from global memory by 4 bytes a thread, too."""
        lines = {line for together in loop.loads_around for line in together}
        opcodes = [op for each in evidence.facts.lines if each.line in lines for op in each.opcodes]
        return "LDG.E" in opcodes and "LDG.E.128" not in opcodes

    def look(self, evidence: Evidence) -> Saving | None:
        loop = evidence.loop
        fma = evidence.loop_mix.get(Kind.FMA, 0)
        loads = evidence.loop_mix.get(Kind.SHARED_LOAD, 0)
        if loop is None or evidence.uses_tensor_cores or not loads or fma < 2 * loads:
            return None
        narrow = loop.opcodes.get("LDS", 0)
        if 2 * narrow <= loads:
            return None
        saved = self.FEWER * narrow / fma * fma_warps(evidence.counters)
        left = evidence.work.without(Unit.L1, evidence.clocks(saved / 2))
        if self._copies_are_narrow(evidence, loop):
            saved += self.FEWER * instructions_around(loop, evidence.counters)
        ratio = scale(evidence.facts, evidence.counters) / evidence.gpu.multiprocessors
        issue = saved * ratio / WARP_INSTRUCTIONS
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
        if evidence.loop is None or evidence.uses_tensor_cores or not fma:
            return None
        clocks = dict(evidence.work.clocks)
        issue = clocks.pop(Unit.ISSUE)
        # While operands hold an instruction up, other warps issue what needs none of them.
        slots = issue * everything / max(everything, evidence.loop.issue_clocks)
        if slots < max(clocks.values()):
            return None
        share = fma / everything
        return Saving(
            f"{figures.percent(share)} of the instructions in the loop are multiply-adds, where "
            f"{figures.percent(self.IDEAL)} is possible",
            share,
            self.IDEAL,
            evidence.work.without(Unit.ISSUE, max(issue * (1 - share / self.IDEAL), 0.0)),
            evidence.most_in_loop(Kind.OTHER),
        )


class LargeLoop(Rule):
    name = "large-loop"
    why = "Instructions that do not fit into the instruction cache come from the L2 cache, slowly."
    remedy = "unroll less"
    see = None

    def look(self, evidence: Evidence) -> Saving | None:
        busy = evidence.work.clocks.get(Unit.FETCH)
        if evidence.loop is None or busy is None:
            return None
        size = loop_bytes(evidence.loop)
        return Saving(
            f"the loop has {size >> 10} KiB of instructions, and the instruction cache holds "
            f"{INSTRUCTION_CACHE >> 10}",
            size,
            INSTRUCTION_CACHE,
            evidence.work.without(Unit.FETCH, busy),
            evidence.most_in_loop(Kind.FMA),
        )


class RegisterBanks(Rule):
    name = "register-banks"
    why = "Each of the two banks of the register file gives one register a clock."
    remedy = "walk through the products in serpentine order, and keep sums apart from stored values"
    see = "16_register_banks"

    LEAN = 0.9
    """The share of multiply-adds from which there is little else to take out of a loop."""

    IDEAL = 1.06
    """Clocks for each instruction in the loop of 16_register_banks."""

    def look(self, evidence: Evidence) -> Saving | None:
        fma = evidence.loop_mix.get(Kind.FMA, 0)
        everything = sum(evidence.loop_mix.values())
        if evidence.loop is None or evidence.uses_tensor_cores or fma < self.LEAN * everything:
            return None
        figure = evidence.loop.issue_clocks / everything
        issue = evidence.work.clocks[Unit.ISSUE]
        return Saving(
            f"operands out of the same bank of registers hold instructions up: {figure:.2f} clocks "
            "for each",
            figure,
            self.IDEAL,
            evidence.work.without(Unit.ISSUE, max(issue * (1 - self.IDEAL / figure), 0.0))
            if figure > self.IDEAL
            else evidence.work,
            evidence.most_in_loop(Kind.FMA),
        )


class Spills(Rule):
    name = "spills"
    why = "What does not fit into the registers goes through the L1 cache, there and back."
    remedy = "fewer outputs a thread, or a larger register budget by __launch_bounds__"
    see = None

    CONSTANT_INDICES = "unroll the loops over it: only what has constant indices lies in registers"

    PLACES: ClassVar[dict[Unit, str]] = {
        Unit.L1: "the L1 cache",
        Unit.L2: "the L2 cache, for they do not fit into L1",
        Unit.DRAM: "device memory, for they fit into no cache",
    }

    def look(self, evidence: Evidence) -> Saving | None:
        used = evidence.facts.resources
        spilled = evidence.loop_mix.get(Kind.LOCAL, 0)
        if evidence.loop is None or not spilled:
            return None
        code = {
            opcode: count
            for opcode, count in evidence.loop.opcodes.items()
            if kind_of(opcode) is not Kind.LOCAL
        }
        what = "move an array of the thread, whose indices are not constant,"
        if used.spill_load_bytes:
            what = f"move registers ({used.spill_store_bytes} B stored, "
            what += f"{used.spill_load_bytes} B loaded a thread)"
        left = evidence.with_loop(code)
        share = sum(code.values()) / sum(evidence.loop.opcodes.values())
        return Saving(
            f"{spilled} of the loop's {sum(evidence.loop_mix.values())} instructions {what} "
            f"from and to {self.PLACES[spills_to(evidence.facts, evidence.gpu)]}",
            spilled,
            0,
            less_waiting(left, min(evidence.waits_without(Producer.LOCAL) / share, 1.0)),
            evidence.most_in_loop(Kind.LOCAL),
            remedy=None if used.spill_load_bytes else self.CONSTANT_INDICES,
        )


class DoublePrecision(Rule):
    name = "fp64"
    why = "A float that meets a double is converted, and both units are slower than those of FP32."
    remedy = "write constants with f (1.0f), and keep the sum in a float"
    see = None

    def look(self, evidence: Evidence) -> Saving | None:
        if evidence.loop is None:
            return None
        code: dict[str, int] = {}
        slow = 0
        for opcode, count in evidence.loop.opcodes.items():
            wide = kind_of(opcode) is Kind.FP64 or is_double_conversion(opcode)
            slow += count if wide else 0
            if opcode == "DFMA":
                code["FFMA"] = code.get("FFMA", 0) + count
            elif not wide:
                code[opcode] = code.get(opcode, 0) + count
        if not slow:
            return None
        return Saving(
            f"{slow} of the loop's {sum(evidence.loop_mix.values())} instructions compute in "
            "double (FP64) or convert from and to it",
            slow,
            0,
            evidence.with_loop(code),
            evidence.most(lambda op: kind_of(op) is Kind.FP64 or is_double_conversion(op)),
        )


class SpecialFunctions(Rule):
    name = "special-functions"
    why = "Roots, reciprocals, sines and conversions leave a multiprocessor at 16 in a clock."
    remedy = "compute them once, before the loop, or from multiply-adds"
    see = None

    def look(self, evidence: Evidence) -> Saving | None:
        code = dict(evidence.loop.opcodes) if evidence.loop else {}
        special = {opcode: code.pop(opcode) for opcode in tuple(code) if is_special(opcode)}
        if not special:
            return None
        return Saving(
            f"{sum(special.values())} of the loop's {sum(evidence.loop_mix.values())} instructions "
            f"are special functions or conversions ({', '.join(sorted(special))})",
            sum(special.values()),
            0,
            evidence.with_loop(code),
            evidence.most(is_special),
        )


class StoresInLoop(Rule):
    name = "stores"
    why = "Each store goes to the L2 cache; a sum in a register costs nothing until it is complete."
    remedy = "add up in a register, and store once, after the loop"
    see = None

    OFTEN = 2.0

    def look(self, evidence: Evidence) -> Saving | None:
        counters = evidence.counters
        if evidence.loop is None or counters.blocks_depend or not stores_in(evidence.loop.opcodes):
            return None
        storing = {each.line for each in evidence.facts.lines if stores_in(each.opcodes)}
        lines = [each for each in counters.lines if each.line in storing and each.global_sectors]
        needed = counters.flop / (2 * counters.shape.N) / SECTOR * 4
        stored = sum(each.global_sectors for each in lines)
        if stored < self.OFTEN * needed:
            return None
        passes = sum(each.global_passes for each in lines) * (1 - needed / stored)
        bytes_saved = (stored - needed) * SECTOR
        left = evidence.work.without(Unit.L1, evidence.clocks(passes))
        ratio = scale(evidence.facts, counters) / evidence.gpu.multiprocessors
        left = left.without(Unit.L2, bytes_saved / L2_BYTES * ratio)
        return Saving(
            f"each element of C is stored or changed {stored / needed:.0f} times",
            stored / needed,
            1.0,
            left,
            max(lines, key=lambda each: each.global_sectors).line,
        )


class Fences(Rule):
    name = "fences"
    why = "A memory fence waits until the warp's accesses before it are done."
    remedy = "fence once, before other blocks are told; __syncthreads() orders a block's accesses"
    see = None

    def look(self, evidence: Evidence) -> Saving | None:
        count = fences(evidence.loop.opcodes) if evidence.loop else 0
        if not count:
            return None
        clocks = evidence.rounds * count * FENCE_PASSES / evidence.gpu.l1_passes
        return Saving(
            f"{count} of the loop's {sum(evidence.loop_mix.values())} instructions are fences",
            count,
            0,
            evidence.work.without(Unit.L1, clocks),
            evidence.most(lambda opcode: opcode.startswith("MEMBAR")),
        )


class IntegerDivision(Rule):
    name = "integer-division"
    why = (
        "No unit divides integers: each / or % by a value of run time takes about 15 instructions."
    )
    remedy = "count instead (if (++i == n) i = 0), or divide before the loop"
    see = None

    INSTRUCTIONS = 15
    KEPT = 2
    """A comparison and a selection in place of each division."""

    def look(self, evidence: Evidence) -> Saving | None:
        code = dict(evidence.loop.opcodes) if evidence.loop else {}
        special = [opcode for opcode in code if opcode.startswith(("I2F", "F2I", "MUFU.RCP"))]
        names = {opcode.partition(".")[0] for opcode in special}
        divisions = sum(count for opcode, count in code.items() if opcode.startswith("IMAD.HI"))
        if not divisions or not {"I2F", "F2I"} <= names:
            return None
        for opcode in special:
            del code[opcode]
        saved = divisions * (self.INSTRUCTIONS - self.KEPT)
        whole = {opcode: count for opcode, count in code.items() if kind_of(opcode) is Kind.OTHER}
        share = min(1.0, saved / max(1, sum(whole.values())))
        for opcode, count in whole.items():
            code[opcode] = max(round(count * (1 - share)), 0)
        everything = sum(evidence.loop_mix.values())
        return Saving(
            f"an integer division or remainder takes about "
            f"{figures.percent(min(1.0, divisions * self.INSTRUCTIONS / everything))} of the "
            "loop's instructions",
            divisions,
            0,
            evidence.with_loop(code),
            evidence.most(lambda opcode: opcode.startswith(("IMAD.HI", "I2F", "F2I"))),
        )


class FewWarps(Rule):
    name = "latency"
    why = "A multiprocessor hides the wait of one warp only behind the work of others."
    remedy = "fewer registers, or fetch the next tile while this one is multiplied"
    see = "11_double_buffering"

    MORE_A_THREAD = "give each thread several outputs, or fetch the next tile ahead"
    LESS_SHARED = (
        "drop shared memory that is not needed, or take smaller tiles: more blocks fit then"
    )
    MORE_BLOCKS = "launch more blocks (a smaller tile in the launch line)"

    def look(self, evidence: Evidence) -> Saving | None:
        work, room = evidence.work, evidence.facts.occupancy
        if work.busiest is not Unit.LATENCY or evidence.loop is None or not room.warps:
            return None
        blocks = resident_blocks(evidence.facts, evidence.gpu)
        warps = room.warps * blocks // room.blocks
        one = work.clocks[Unit.LATENCY] * warps / evidence.rounds
        limit: str = room.limited_by
        remedy = None
        if blocks < room.blocks:
            limit, remedy = "the number of blocks of the launch", self.MORE_BLOCKS
        elif limit == "shared memory":
            remedy = self.LESS_SHARED
        elif warps == room.max_warps:
            remedy = self.MORE_A_THREAD
        has_room = remedy in (self.LESS_SHARED, self.MORE_BLOCKS)
        most = float(room.max_warps if limit == "shared memory" else room.warps)
        others = max(busy for unit, busy in work.clocks.items() if unit is not Unit.LATENCY)
        needed = min(most, work.clocks[Unit.LATENCY] * warps / others)
        hidden = warps / needed if has_room else 0.5
        left = work.without(Unit.LATENCY, work.clocks[Unit.LATENCY] * (1 - hidden))
        return Saving(
            f"{warps} warps on a multiprocessor (occupancy "
            f"{figures.percent(warps / room.max_warps)}, limited by {limit}) do not hide the "
            f"latency: a warp takes {one:.0f} clocks for an iteration of "
            f"{sum(evidence.loop_mix.values())} instructions",
            float(warps),
            needed if has_room else float(room.max_warps),
            replace(left, exposed=left.exposed * hidden) if has_room else left,
            evidence.most_in_loop(Kind.GLOBAL_LOAD),
            remedy=remedy,
            nothing_to_see=has_room,
        )


class TensorIssue(Rule):
    name = "tensor-issue"
    why = "Each instruction that is not a product takes an issue slot beside the tensor cores."
    remedy = (
        "split A and B once while they are stored, copy 16 bytes at a time, and let each fragment "
    )
    remedy += "serve more products (larger warp tiles)"
    see = "31_mma_bf16x3"

    IDEAL = 4.0
    """Other instructions for each product that 31_mma_bf16x3 comes close to."""

    def look(self, evidence: Evidence) -> Saving | None:
        tensor = evidence.loop_mix.get(Kind.TENSOR, 0)
        if not tensor or evidence.work.busiest not in (Unit.ISSUE, Unit.INTEGER):
            return None
        everything = sum(evidence.loop_mix.values())
        others = everything - tensor
        if others <= self.IDEAL * tensor:
            return None
        share = (1 + self.IDEAL) * tensor / everything
        left = evidence.work
        for unit in (Unit.ISSUE, Unit.INTEGER, Unit.LATENCY):
            if unit in left.clocks:
                left = left.without(unit, left.clocks[unit] * (1 - share))
        return Saving(
            f"{others} other instructions in the loop for {tensor} products on the tensor cores "
            "take the issue slots",
            others / tensor,
            self.IDEAL,
            left,
            evidence.most_in_loop(Kind.OTHER),
        )


class Divergence(Rule):
    name = "divergence"
    why = "Where threads of a warp go different ways, the warp goes each way for some of them."
    remedy = "let whole warps take the same way: decide by the row or the warp, or select values"
    see = None

    def look(self, evidence: Evidence) -> Saving | None:
        def lost(line: LineCounters) -> float:
            return line.warp_instructions - line.instructions / WARP

        found = evidence.costliest(lost)
        if found is None:
            return None
        line, _ = found
        share = active_share(evidence.counters)
        left = evidence.work
        for unit in (Unit.ISSUE, Unit.FMA, Unit.INTEGER, Unit.LATENCY):
            if unit in left.clocks:
                left = left.without(unit, left.clocks[unit] * (1 - share))
        passes = sum(
            l1_clocks(each) * (1 - each.instructions / (WARP * each.warp_instructions))
            for each in evidence.counters.lines
            if each.warp_instructions
        )
        lanes = line.instructions / line.warp_instructions
        return Saving(
            f"{lanes:.0f} of a warp's {WARP} threads are active: they go different ways",
            lanes,
            float(WARP),
            left.without(Unit.L1, evidence.clocks(passes)),
            line.line,
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
    see = "33_wgmma_two_phase"

    BUSY = 0.73
    REACHED = 0.676
    """The share of the peak at the highest clock that 33 reaches on an H100, in 1.71 ms."""

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
    why = "On sm_90 mma.sync reaches about 63 % of the tensor cores' peak, and wgmma more."
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
        left = work.without(Unit.TENSOR, tensor * (1 - MMA_SYNC_SHARE / SUSTAINED))
        left = replace(left, in_turn=False)
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
    see = "36_wgmma_one_accumulator"

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
        work = work.without(Unit.L2, 0.5 * work.clocks[Unit.L2])  # the tiles can be larger
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
    why = "While every block waits for its next tile, no unit has anything to do."
    remedy = "fetch the next tile while this one is multiplied: two buffers, or async copies"
    see = "11_double_buffering"

    def look(self, evidence: Evidence) -> Saving | None:
        work, blocks = evidence.work, evidence.facts.occupancy.blocks
        if not work.exposed or evidence.loop_mix.get(Kind.COPY):  # fetched ahead already
            return None
        line = evidence.costliest(lambda each: each.global_requests)
        without = work.without(Unit.LATENCY, work.exposed)
        return Saving(
            f"the {blocks} blocks of a multiprocessor wait for global memory at the same time"
            if blocks > 1
            else "the only block of a multiprocessor waits for global memory",
            work.exposed / work.fill / work.total,
            0.0,
            replace(without, exposed=0.0),
            line[0].line if line else None,
        )


RULES: tuple[Rule, ...] = (
    Uncoalesced(),
    ReadAgain(),
    BankConflicts(),
    FewProductsPerLoad(),
    NarrowLoads(),
    Overhead(),
    LargeLoop(),
    RegisterBanks(),
    Spills(),
    DoublePrecision(),
    IntegerDivision(),
    SpecialFunctions(),
    StoresInLoop(),
    Fences(),
    FewWarps(),
    Divergence(),
    LastWave(),
    TensorCores(),
    OldTensorPath(),
    SlowTensorType(),
    EqualProducts(),
    SplitInLoop(),
    TensorIssue(),
    Waits(),
)


FIRST = ("spills",)
"""Rules that are heard before dearer ones: what they find distorts what the others see."""

MORE_A_THREAD = {"few-products-per-load", "overhead", "narrow-loads", "tensor-issue"}
LESS_A_THREAD = {"spills", "latency"}
CONTRARY = {
    **dict.fromkeys(MORE_A_THREAD, LESS_A_THREAD),
    **dict.fromkeys(LESS_A_THREAD, MORE_A_THREAD),
}
"""Rules that ask for more outputs a thread, and rules that ask for fewer registers: of these that
are contrary the first is heard alone."""

SAID = {
    "spills": {"tensor-cores", "latency"},
    "integer-division": {"overhead", "special-functions"},
    "fp64": {"overhead", "special-functions"},
    "special-functions": {"overhead"},
    "divergence": {"overhead", "few-products-per-load"},
    "split-in-loop": {"tensor-issue"},
    "latency": {"waits"},
}
"""By rule, the other rules that need not repeat its finding."""


def advice(evidence: Evidence, rules: tuple[Rule, ...] = RULES) -> tuple[Advice, ...]:
    """Return what is worth saying, the dearest first."""
    savings: dict[Rule, Saving] = {}
    for rule in rules:
        saving = rule.look(evidence)
        worth = WORTH_SAYING if not isinstance(rule, LastWave) else 1.02
        if saving is not None and evidence.work.total / saving.left.total >= worth:
            savings[rule] = saving
    _join_patterns(savings, evidence.work)
    found = [_advice(evidence, rule, saving) for rule, saving in savings.items()]
    first = (*FIRST, FewWarps.name) if evidence.work.waits_most else FIRST
    found.sort(key=lambda each: (each.rule not in first, -each.gain))
    said = {name for each in found for name in SAID.get(each.rule, ())}
    heard: list[Advice] = []
    for each in found:
        contrary = CONTRARY.get(each.rule, set())
        if each.rule not in said and not any(other.rule in contrary for other in heard):
            heard.append(each)
    return tuple(sorted(heard, key=lambda each: -each.gain)[:MAX_FINDINGS])


def _join_patterns(savings: dict[Rule, Saving], work: Workload) -> None:
    """Make one finding of two that one line has for one reason: its indices are the wrong way round
    in global memory and in shared memory."""
    named = {rule.name: rule for rule in savings}
    pair = [named.get("uncoalesced"), named.get("bank-conflicts")]
    one, other = (savings.get(rule) if rule else None for rule in pair)
    if one is None or other is None or one.line != other.line:
        return
    left = work
    for unit, clocks in work.clocks.items():
        saved = 2 * clocks - one.left.clocks[unit] - other.left.clocks[unit]
        left = left.without(unit, saved)
    kept, gone = sorted((rule for rule in pair if rule), key=lambda rule: savings[rule].left.total)
    savings[kept] = replace(
        savings[kept],
        message=f"{savings[kept].message}; {savings[gone].message}",
        left=left,
        remedy="swap the indices, so that neighbouring threads take neighbouring words",
    )
    del savings[gone]


def _advice(evidence: Evidence, rule: Rule, saving: Saving) -> Advice:
    gain = evidence.work.total / saving.left.total
    return Advice(
        rule=rule.name,
        line=saving.line,
        message=saving.message,
        figure=saving.figure,
        ideal=saving.ideal,
        cost=1 - 1 / gain,
        gain=gain,
        remedy=saving.remedy or rule.remedy,
        see=None if saving.nothing_to_see else saving.see or rule.see,
    )
