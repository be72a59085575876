"""The facts about a kernel from which the rules derive their advice, and the estimate of its time.

The counters are those of some blocks at some size. They are scaled to one multiprocessor's part of
the ranked size by the work.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from harness.compiling.occupancy import WARP, WARPS_PER_BLOCK
from harness.judge.explain.counts import (
    SECTOR,
    active_share,
    barriers_around,
    bytes_between_phases,
    fma_warps,
    fp64_warps,
    fused_warps,
    hot_loop,
    instructions_around,
    l1_clocks,
    tensor_warps,
    tensor_work,
    waits_around,
)
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import (
    FETCHED,
    INSTRUCTION_CACHE,
    L2_BYTES,
    MMA_SYNC_SHARE,
    SUSTAINED,
    WARP_INSTRUCTIONS,
    Gpu,
)
from harness.judge.explain.latency import BARRIER, DEVICE_MEMORY, L2_CACHE, Iteration, iteration
from harness.judge.explain.opcodes import (
    STORES,
    Kind,
    columns_at_once,
    count_kinds,
    count_of,
    kind_of,
    pipeline_clocks,
)
from harness.judge.explain.workload import (
    LINE,
    Workload,
    fill,
    local_passes,
    loop_bytes,
    resident_blocks,
    spills_to,
)
from harness.protocol.report import CodeLoop, Counters, DisassembledKernel, LineCounters, Producer
from problem.cases import RANKED

MERGED = 0.9
"""Less than this share of the loads that were counted must be left in the machine code."""

FENCE_PASSES = 3
"""Clocks for which a memory fence keeps the data path of shared memory busy. Fitted to two kernels
of the tests on an H200, fence_every_step and divergent_halves."""

_MACS = {"1684": 512, "1688": 1024, "16816": 2048, "16832": 4096}
"""Multiply-adds of a matrix instruction of machine code, by the shape that its name ends in."""


@dataclass(frozen=True)
class Evidence:
    """The facts about a kernel that the rules examine; `of` makes it."""

    facts: DisassembledKernel
    counters: Counters
    gpu: Gpu

    @classmethod
    def of(cls, facts: DisassembledKernel, counters: Counters, gpu: Gpu) -> Self:
        """Return the evidence, without loads of the PTX that ptxas has merged."""
        counted = cls(facts, counters, gpu)
        return replace(counted, counters=counted._without_merged_loads())

    def _without_merged_loads(self) -> Counters:
        """Return the counters without loads of the PTX that the machine code does not have: ptxas
        merges equal loads in the loop that computes."""
        loop, counters = self.loop, self.counters
        if loop is None:
            return counters
        loading = {
            line.line
            for line in self.facts.lines
            if line.line in loop.source_lines
            and count_of(line.opcodes, "LDG")
            and not count_of(line.opcodes, *STORES)
        }
        counted = sum(line.global_requests for line in counters.lines if line.line in loading)
        executed = self.iterations * count_of(loop.opcodes, "LDG")
        if not executed or executed > MERGED * counted:
            return counters
        kept = executed / counted
        names = ("global_requests", "global_passes", "global_sectors", "global_min_sectors")
        lines = tuple(
            line.model_copy(update={name: round(getattr(line, name) * kept) for name in names})
            if line.line in loading
            else line
            for line in counters.lines
        )
        return counters.model_copy(update={"lines": lines})

    # -- the loop that computes

    @cached_property
    def loop(self) -> CodeLoop | None:
        return hot_loop(self.facts, self.counters)

    @cached_property
    def opcodes(self) -> dict[str, int]:
        """How often each opcode stands in the loop that computes; empty without such a loop."""
        return dict(self.loop.opcodes) if self.loop else {}

    @cached_property
    def loop_mix(self) -> dict[Kind, int]:
        """The number of instructions of each kind in that loop."""
        return count_kinds(self.opcodes)

    @property
    def loop_size(self) -> int:
        """The number of instructions in that loop."""
        return sum(self.opcodes.values())

    @cached_property
    def iterations(self) -> float:
        """How often the warps that were counted went through that loop."""
        counters, kinds = self.counters, self.loop_mix
        if self.loop is None:
            return 0.0
        by_warp = [macs for (_, by_groups), macs in self.tensor_work.items() if not by_groups]
        if by_warp:
            macs = sum(
                count * next((_MACS[word] for word in opcode.split(".") if word in _MACS), 0)
                for opcode, count in self.opcodes.items()
                if kind_of(opcode) is Kind.TENSOR
            )
            if macs:
                return sum(by_warp) / macs
        if self.tensor_work:
            return tensor_warps(counters) / kinds[Kind.TENSOR]
        kind, warps, instructions = Kind.FMA, fma_warps(counters), kinds.get(Kind.FMA, 0)
        if fp64_warps(counters) > warps:
            kind, warps = Kind.FP64, fp64_warps(counters)
            instructions = kinds[kind]
        elif self.opcodes.get("FFMA") and fused_warps(counters):
            # Machine code has additions and multiplications of its own, as before sines.
            warps, instructions = fused_warps(counters), self.opcodes["FFMA"]
        # Lanes of other lines may diverge more than those of the lines that compute.
        computing = {line.line for line in self.facts.lines if count_kinds(line.opcodes).get(kind)}
        lines = tuple(line for line in counters.lines if line.line in computing)
        return warps / instructions / active_share(lines)

    @property
    def rounds(self) -> float:
        """How often a multiprocessor's warps go through the loop at the ranked size."""
        return self.iterations * self.ratio

    # -- the counted work

    @cached_property
    def tensor_work(self) -> dict[tuple[str, bool], float]:
        """Multiply-adds on the tensor cores, as `counts.tensor_work` returns them."""
        return tensor_work(self.counters)

    @cached_property
    def scale(self) -> float:
        """How many times as much work the ranked size is as the counted blocks.

        The ratio is that of the numbers of blocks, since blocks at an edge also compute elements
        that lie outside. If blocks divide the work among themselves, and the tile of the launch is
        larger than the counted matrix, that ratio means nothing. Then the columns are rounded up to
        as many as a matrix instruction computes at once.
        """
        launch, counters, shape = self.facts.launch, self.counters, self.counters.shape
        if counters.blocks_depend and (launch.tile_rows > shape.M or launch.tile_columns > shape.K):
            parts = [columns_at_once(opcode) for opcode in counters.instructions]
            width = max((part for part in parts if part), default=1)
            computed, ranked = (-(-each.K // width) * width for each in (shape, RANKED.shape))
            rows_and_depth = RANKED.shape.M * RANKED.shape.N / (shape.M * shape.N)
            return rows_and_depth * ranked / computed
        columns, rows, _ = launch.grid(RANKED.shape.M, RANKED.shape.K)
        return columns * rows / counters.counted_blocks * RANKED.shape.N / shape.N

    @property
    def ratio(self) -> float:
        """Return the ratio of a multiprocessor's work at the ranked size to the counted work."""
        return self.scale / self.gpu.multiprocessors

    @cached_property
    def _past_l1(self) -> set[int]:
        """The source lines all of whose accesses to global memory go past the L1 cache."""
        found = set()
        for line in self.facts.lines:
            loads = [opcode for opcode in line.opcodes if opcode.startswith(("LDG.", "LD."))]
            stores = count_of(line.opcodes, *STORES)
            if (loads or stores) and all("STRONG" in opcode for opcode in loads):
                found.add(line.line)
        return found

    @property
    def l2_sectors(self) -> int:
        """The least number of sectors that go to the L2 cache.

        Data that a block soon reads again comes from L1, except by loads past L1, as of volatile
        variables. Stores always reach L2. Data that has left L1 is read for all warps of the block
        at once.
        """
        return sum(
            line.global_sectors
            if line.line in self._past_l1
            else max(line.global_first_sectors, line.global_new_sectors // WARPS_PER_BLOCK)
            for line in self.counters.lines
        )

    @property
    def _misses(self) -> dict[int, float]:
        """Return, by source line, the share of sectors that are not in the L1 cache for a warp: it
        did not touch them shortly before. Where another warp did, it waits for the same results,
        for the warps of a block go through the same data side by side. Loads past the L1 cache find
        none there."""
        return {
            line.line: max(line.global_new_sectors, line.global_first_sectors) / line.global_sectors
            for line in self.counters.lines
            if line.global_sectors and line.line not in self._past_l1
        }

    @property
    def _memory_latency(self) -> float:
        """The clocks for a result from beyond the L1 cache.

        Blocks are started row by row of the grid. The blocks of one row share A in the L2 cache. B
        is too large to stay there until the next rows start. So it is shared only by blocks of one
        column that run at the same time.
        """
        if self.counters.blocks_depend:  # they choose their tiles themselves
            return L2_CACHE
        columns, rows, _ = self.facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
        started = resident_blocks(self.facts, self.gpu) * self.gpu.multiprocessors
        share = 1 / min(max(started / columns, 1.0), rows)
        return share * DEVICE_MEMORY + (1 - share) * L2_CACHE

    @property
    def _issued_warps(self) -> float:
        """The issue slots that warp instructions of the machine code take.

        The counted instructions are those of PTX, of which ptxas makes fewer. So the loop that
        computes tells how many there are for each multiply-add, and those of other lines are added
        as counted. If blocks divide the work among themselves, the loop tells how many there are
        for each matrix instruction. Other parts of the work, such as splitting A and B, grow more
        slowly than the products.
        """
        counters, loop = self.counters, self.loop
        counted = float(counters.warp_instructions)
        if loop is None:
            return counted
        if not self.tensor_work:
            inside = self.iterations * max(self.loop_size, loop.issue_clocks)
            around = 0 if counters.blocks_depend else instructions_around(loop, counters)
            return inside + around
        if not counters.blocks_depend:
            return counted
        return min(counted, tensor_warps(counters) * self.loop_size / self.loop_mix[Kind.TENSOR])

    # -- the estimate

    @cached_property
    def work(self) -> Workload:
        """The workload at the ranked size, from the counters scaled by the work."""
        counters, gpu, ratio = self.counters, self.gpu, self.ratio
        clocks_per_byte = gpu.clocks_per_ms / (gpu.memory_gb_per_s * 1e6)
        active = active_share(counters.lines)
        clocks = {
            Unit.L1: sum(map(l1_clocks, counters.lines)) * ratio / gpu.l1_passes,
            Unit.FMA: fma_warps(counters) * WARP / gpu.fp32_lanes * ratio / active,
            Unit.ISSUE: self._issued_warps / WARP_INSTRUCTIONS * ratio,
            Unit.L2: self.l2_sectors * SECTOR / L2_BYTES * ratio,
            Unit.DRAM: 4 * RANKED.shape.elements * clocks_per_byte,
        }
        tensor = 0.0
        for (kind, by_groups), macs in self.tensor_work.items():
            peak = gpu.tensor_macs(kind)
            if peak is not None:
                share = 1.0 if gpu.number != 90 else SUSTAINED if by_groups else MMA_SYNC_SHARE
                tensor += macs * ratio / (peak * share)
        if tensor:
            clocks[Unit.TENSOR] = tensor
        # The rates of some GPUs are not known, such as those of an RTX 5090.
        in_turn = bool(tensor) and any(not by_groups for _, by_groups in self.tensor_work)
        for unit, busy in self._loop_clocks(self.opcodes).items():
            clocks[unit] = clocks.get(unit, 0.0) + busy
        code = loop_bytes(self.loop) if self.loop else 0
        if code > INSTRUCTION_CACHE:  # the warps of a block go through it together
            clocks[Unit.FETCH] = self.rounds / WARPS_PER_BLOCK * code / FETCHED
        work = Workload(clocks, in_turn=in_turn)
        waits = self._waits(work, self.loop) if self.loop is not None else None
        if waits is not None:
            clocks = {**clocks, Unit.LATENCY: waits.clocks}
            work = replace(work, clocks=clocks, exposed=waits.waiting)
        if counters.blocks_depend:
            return replace(work, before=bytes_between_phases(counters) * clocks_per_byte)
        return replace(work, fill=fill(self.facts, gpu))

    def _loop_clocks(self, opcodes: dict[str, int]) -> dict[Unit, float]:
        """Return how many clocks these instructions of the loop that computes keep each unit busy.
        Products and counted accesses are counted elsewhere."""
        gpu, times, home = self.gpu, self.rounds, spills_to(self.facts, self.gpu)
        clocks = {unit: times * busy for unit, busy in pipeline_clocks(opcodes, gpu).items()}
        spilled = times * local_passes(opcodes)
        fenced = times * count_of(opcodes, "MEMBAR") * FENCE_PASSES
        # Shuffles go through the data path of shared memory, one per clock, as measured on an H200.
        shuffled = times * count_of(opcodes, "SHFL")
        clocks[Unit.L1] = (spilled + fenced + shuffled) / gpu.l1_passes
        on_to_l2 = times * local_passes(opcodes, ("STL",)) if home is Unit.L1 else spilled
        clocks[Unit.L2] = on_to_l2 * LINE / L2_BYTES
        if home is Unit.DRAM:
            clocks[Unit.DRAM] = spilled * LINE / gpu.memory_bytes_per_clock
        return clocks

    def _waits(self, work: Workload, loop: CodeLoop) -> Iteration | None:
        """Return the clocks of all iterations of a multiprocessor's warps, and in how many of them
        nothing hides the latency of memory. Return None where nothing is known of waits.

        work: that of the other units.
        """
        facts, counters = self.facts, self.counters
        warp_groups = any(by_groups for _, by_groups in self.tensor_work)
        blocks = resident_blocks(facts, self.gpu)
        if not loop.waits or not blocks or (counters.blocks_depend and warp_groups):
            return None
        executed = self.iterations
        warps = facts.occupancy.warps * blocks // facts.occupancy.blocks
        share = self.ratio / warps
        one = self._iteration(loop)
        waits = 0 if counters.blocks_depend else waits_around(loop, counters)
        outside = waits * self._memory_latency
        together = barriers_around(loop, executed, counters)
        all_warps = executed * one.clocks + outside + together * BARRIER
        all_warps += instructions_around(loop, counters)
        by_block = together or count_of(loop.opcodes, "BAR")  # else every warp waits for itself
        alike = blocks if by_block else warps
        at_once = warps // alike if by_block else warps
        pace = max(at_once / WARP_INSTRUCTIONS, 1.0)
        if by_block and executed:
            busy = work.total / (executed * share * warps / at_once)
            pace = max(pace, busy / sum(loop.opcodes.values()))
        waiting = executed * self._iteration(loop, pace).waiting + outside
        return Iteration(all_warps * share, waiting * share / alike)

    def _iteration(self, loop: CodeLoop, clocks_to_issue: float = 1) -> Iteration:
        """Return what an iteration of a loop takes a warp on this GPU."""
        leave_l1 = spills_to(self.facts, self.gpu) is not Unit.L1
        return iteration(loop, leave_l1, self._misses, self._memory_latency, clocks_to_issue)

    # -- the work that a change would leave

    def without_passes(self, passes: float) -> Workload:
        """Return the work that is left without some of the counted passes of the L1 cache."""
        return self.work.without(Unit.L1, passes * self.ratio / self.gpu.l1_passes)

    def with_loop(self, opcodes: dict[str, int]) -> Workload:
        """Return the work that is left if the loop has only these instructions.

        A warp waits in proportion to them, or less.
        """
        share = sum(opcodes.values()) / self.loop_size
        left = self.work.shortened(1 - share, Unit.ISSUE, Unit.LATENCY)
        kept = self._loop_clocks(opcodes)
        for unit, busy in self._loop_clocks(self.opcodes).items():
            left = left.without(unit, busy - kept.get(unit, 0.0))
        return left

    def waits_without(self, producer: Producer) -> float:
        """Return what share of an iteration is left if nothing waits for these results."""
        assert self.loop is not None
        kept = tuple(wait for wait in self.loop.waits if wait.producer is not producer)
        left = self._iteration(self.loop.model_copy(update={"waits": kept}))
        return left.clocks / self._iteration(self.loop).clocks

    # -- lines of the source

    def most_in_loop(self, kind: Kind) -> int | None:
        """Return the line of the loop from which most instructions of a kind came."""
        within = self.loop.source_lines if self.loop else ()
        return self.most(lambda opcode: kind_of(opcode) is kind, within)

    def most(
        self, wanted: Callable[[str], bool], within: Container[int] | None = None
    ) -> int | None:
        """Return the line from which most of the wanted instructions came; within: one of these."""
        counts = {
            line.line: sum(count for opcode, count in line.opcodes.items() if wanted(opcode))
            for line in self.facts.lines
            if within is None or line.line in within
        }
        found = max(counts, key=lambda line: counts[line], default=None)
        return found if found is not None and counts[found] else None

    def costliest(self, cost: Callable[[LineCounters], float]) -> tuple[LineCounters, float] | None:
        """Return the line with most of the cost, and the cost of all lines."""
        lines = [line for line in self.counters.lines if cost(line) > 0]
        if not lines:
            return None
        return max(lines, key=cost), sum(cost(line) for line in lines)
