"""The clocks for which a kernel keeps each unit of the GPU busy at the ranked size, estimated
without running it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.compiling.occupancy import WARP, WARPS_PER_BLOCK
from harness.compiling.waits import INSTRUCTION_BYTES
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
from harness.judge.explain.latency import BARRIER, DEVICE_MEMORY, L2_CACHE, iteration
from harness.judge.explain.opcodes import (
    STORES,
    Kind,
    columns_at_once,
    how_many,
    kind_of,
    matrix_instruction,
    matrix_type,
    mix,
    pipeline_clocks,
)
from harness.protocol.report import (
    CodeLoop,
    Counters,
    DisassembledKernel,
    LineCounters,
)
from problem.cases import RANKED

OVERLAP = 4.0
"""The exponent of the power mean that combines the units: with 1 they would work one after the
other, with infinity all at once. The table of predictions shows how well this works."""

SECTOR = 32


@dataclass(frozen=True, slots=True)
class Workload:
    """Clocks for which each unit of a multiprocessor is busy with its share of the ranked size.

    fill: share of the multiprocessors' time in which the waves of blocks keep them busy.
    exposed: of the clocks of latency, those in which all blocks wait for memory at a time. Of the
        waiting of n blocks, one nth remains. This is a rule of thumb that fits the ladder and the
        kernels of the tests; it is not derived.
    before: clocks of a phase for which everything else waits.
    in_turn: the tensor cores and the schedulers work in turn, not at the same time. Warps that
        multiply by mma.sync issue in order, and wait for data that they have just split or loaded;
        independent instructions would overlap better. Fitted to 30 and 31 of the ladder.
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


def scale(facts: DisassembledKernel, counters: Counters) -> float:
    """Return how many times as much work the ranked size is as the counted blocks.

    The ratio is that of the numbers of blocks, since blocks at an edge also compute elements that
    lie outside. If blocks divide the work among themselves, and the tile of the launch is larger
    than the counted matrix, that ratio means nothing. Then the columns are rounded up to as many as
    a matrix instruction computes at once.
    """
    launch, shape = facts.launch, counters.shape
    if counters.blocks_depend and (launch.tile_rows > shape.M or launch.tile_columns > shape.K):
        parts = [columns_at_once(opcode) for opcode in counters.instructions]
        width = max((part for part in parts if part), default=1)
        computed, ranked = (-(-each.K // width) * width for each in (shape, RANKED.shape))
        rows_and_depth = RANKED.shape.M * RANKED.shape.N / (shape.M * shape.N)
        return rows_and_depth * ranked / computed
    columns, rows, _ = launch.grid(RANKED.shape.M, RANKED.shape.K)
    return columns * rows / counters.counted_blocks * RANKED.shape.N / shape.N


def l1_clocks(line: LineCounters) -> int:
    """Return the passes of shared memory and of the L1 cache, which share one data path. Data that
    is copied from one to the other goes through it once."""
    return line.shared_wavefronts + line.global_passes - line.copy_passes


def l2_sectors(facts: DisassembledKernel, counters: Counters) -> int:
    """Return the least number of sectors that go to the L2 cache.

    Data that a block soon reads again comes from L1, except by loads past L1, as of volatile
    variables. Stores always reach L2. Data that has left L1 is read for all warps of the block at
    once.
    """
    past = _past_l1(facts)
    return sum(
        line.global_sectors
        if line.line in past
        else max(line.global_first_sectors, line.global_new_sectors // WARPS_PER_BLOCK)
        for line in counters.lines
    )


def _past_l1(facts: DisassembledKernel) -> set[int]:
    """Return the source lines all of whose accesses to global memory go past the L1 cache."""
    found = set()
    for line in facts.lines:
        loads = [opcode for opcode in line.opcodes if opcode.startswith(("LDG.", "LD."))]
        if (loads or how_many(line.opcodes, *STORES)) and all(
            "STRONG" in opcode for opcode in loads
        ):
            found.add(line.line)
    return found


def active_share(counters: Counters) -> float:
    """Return the mean share of a warp's lanes that are active: less than 1 where it diverges."""
    warps = sum(line.warp_instructions for line in counters.lines)
    threads = sum(line.instructions for line in counters.lines)
    return min(1.0, threads / (WARP * warps)) if warps else 1.0


def computing_share(facts: DisassembledKernel, counters: Counters, kind: Kind) -> float:
    """Return the share of active lanes in the lines that compute: others may diverge more."""
    computing = {line.line for line in facts.lines if mix(line.opcodes).get(kind)}
    lines = tuple(line for line in counters.lines if line.line in computing)
    return active_share(counters.model_copy(update={"lines": lines}))


def _warps(counters: Counters, operations: tuple[str, ...], of: str) -> float:
    """Return how many warp instructions of some operations there would be without divergence."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if opcode.endswith(of) and opcode.split(".")[0] in operations
    )
    return threads / WARP


_ARITHMETIC = ("fma", "add", "sub", "mul")


def fma_warps(counters: Counters) -> float:
    """Return the warp instructions that add or multiply float32."""
    return _warps(counters, _ARITHMETIC, ".f32")


def fused_warps(counters: Counters) -> float:
    """Return the warp instructions that multiply and add float32 at once."""
    return _warps(counters, ("fma",), ".f32")


def fp64_warps(counters: Counters) -> float:
    """Return the warp instructions that add or multiply float64."""
    return _warps(counters, _ARITHMETIC, ".f64")


def tensor_work(counters: Counters) -> dict[tuple[str, bool], float]:
    """Return the multiply-adds of matrix instructions, by the type of their inputs and whether warp
    groups issue them."""
    work: dict[tuple[str, bool], float] = {}
    for opcode, threads in counters.instructions.items():
        found = matrix_instruction(opcode)
        if found is not None:
            kind, macs, together = found
            key = (kind, together > WARP)
            work[key] = work.get(key, 0.0) + threads / together * macs
    return work


def tensor_warps(counters: Counters) -> float:
    """Return the warp instructions on the tensor cores."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if matrix_instruction(opcode) is not None
    )
    return threads / WARP


def without_merged_loads(facts: DisassembledKernel, counters: Counters) -> Counters:
    """Return the counters without loads of the PTX that the machine code does not have: ptxas
    merges equal loads in the loop that computes."""
    loop = hot_loop(facts, counters)
    if loop is None or loop.first_line is None or loop.last_line is None:
        return counters
    within = range(loop.first_line, loop.last_line + 1)
    loading = {
        line.line
        for line in facts.lines
        if line.line in within
        and how_many(line.opcodes, "LDG")
        and not how_many(line.opcodes, *STORES)
    }
    counted = sum(line.global_requests for line in counters.lines if line.line in loading)
    executed = iterations(facts, counters) * how_many(loop.opcodes, "LDG")
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


MERGED = 0.9
"""Less than this share of the loads that were counted must be left in the machine code."""


def hot_loop(facts: DisassembledKernel, counters: Counters | None) -> CodeLoop | None:
    """Return the loop that computes most: that with the most tensor instructions, of the types that
    were executed, since there may be another loop for small problems; else that with the most
    multiply-adds."""
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
    kind, warps, instructions = Kind.FMA, fma_warps(counters), kinds.get(Kind.FMA, 0)
    if fp64_warps(counters) > warps:
        kind, warps = Kind.FP64, fp64_warps(counters)
        instructions = kinds[kind]
    elif loop.opcodes.get("FFMA") and fused_warps(counters):
        # Machine code has additions and multiplications of its own, as before sines.
        warps, instructions = fused_warps(counters), loop.opcodes["FFMA"]
    return warps / instructions / computing_share(facts, counters, kind)


def instructions_around(loop: CodeLoop, counters: Counters) -> int:
    """Return the warp instructions of PTX outside of the lines of the loop that computes."""
    if loop.first_line is None or loop.last_line is None:
        return 0
    within = range(loop.first_line, loop.last_line + 1)
    return sum(line.warp_instructions for line in counters.lines if line.line not in within)


def waits_around(loop: CodeLoop, counters: Counters) -> int:
    """Return how often the warps that were counted waited for loads of the loop around this one.

    Machine code holds several ways to load the same, such as four at a time and the rest one by
    one. Those counted are taken to have gone the way that waits least.
    """
    left = {line.line: line.global_requests for line in counters.lines}
    waits = 0
    for together in sorted(loop.loads_around, key=lambda each: -sum(each.values())):
        taken = {line: count for line, count in together.items() if left.get(line)}
        times = min((left[line] // count for line, count in taken.items()), default=0)
        for line, count in taken.items():
            left[line] -= times * count
        waits += times
    return waits


def barriers_around(loop: CodeLoop, times: float, counters: Counters) -> float:
    """Return how often the warps that were counted came to a barrier outside of the loop."""
    threads = sum(
        count
        for opcode, count in counters.instructions.items()
        if opcode.startswith(("bar.sync", "bar.cta.sync", "barrier.sync", "barrier.cta.sync"))
    )
    return max(threads / WARP - times * how_many(loop.opcodes, "BAR"), 0.0)


def issued_warps(facts: DisassembledKernel, counters: Counters) -> float:
    """Return the issue slots that warp instructions of the machine code take.

    The counted instructions are those of PTX, of which ptxas makes fewer. So the loop that computes
    tells how many there are for each multiply-add, and those of other lines are added as counted.
    If blocks divide the work among themselves, the loop tells how many there are for each matrix
    instruction: other parts of the work, such as splitting A and B, grow more slowly than the
    products.
    """
    loop = hot_loop(facts, counters)
    counted = float(counters.warp_instructions)
    if loop is None:
        return counted
    kinds = mix(loop.opcodes)
    if not tensor_work(counters):
        inside = iterations(facts, counters) * max(sum(kinds.values()), loop.issue_clocks)
        around = 0 if counters.blocks_depend else instructions_around(loop, counters)
        return inside + around
    if not counters.blocks_depend:
        return counted
    return min(counted, tensor_warps(counters) * sum(kinds.values()) / kinds[Kind.TENSOR])


def blocks_and_waves(facts: DisassembledKernel, gpu: Gpu) -> tuple[int, float]:
    columns, rows, _ = facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
    at_once = max(1, facts.occupancy.blocks) * gpu.multiprocessors
    return columns * rows, columns * rows / at_once


def fill(facts: DisassembledKernel, gpu: Gpu) -> float:
    """Return the share of the multiprocessors' time in use: the last wave may be partly filled."""
    _, waves = blocks_and_waves(facts, gpu)
    return waves / -(-waves // 1)


def workload(facts: DisassembledKernel, counters: Counters, gpu: Gpu) -> Workload:
    """Return the workload from the counters of some blocks at a small size, scaled by the work."""
    ratio = scale(facts, counters) / gpu.multiprocessors
    bytes_once = 4 * RANKED.shape.elements
    clocks = {
        Unit.L1: sum(l1_clocks(line) for line in counters.lines) * ratio / gpu.l1_passes,
        Unit.FMA: fma_warps(counters) * WARP / gpu.fp32_lanes * ratio / active_share(counters),
        Unit.ISSUE: issued_warps(facts, counters) / WARP_INSTRUCTIONS * ratio,
        Unit.L2: l2_sectors(facts, counters) * SECTOR / L2_BYTES * ratio,
        Unit.DRAM: bytes_once / (gpu.memory_gb_per_s * 1e6) * gpu.clocks_per_ms,
    }
    tensor = 0.0
    for (kind, by_groups), macs in tensor_work(counters).items():
        peak = gpu.tensor_macs(kind)
        if peak is not None:
            share = 1.0 if gpu.number != 90 else SUSTAINED if by_groups else MMA_SYNC_SHARE
            tensor += macs * ratio / (peak * share)
    if tensor:
        clocks[Unit.TENSOR] = tensor
    # The rates of some GPUs are not known, such as those of an RTX 5090.
    in_turn = bool(tensor) and any(not by_groups for _, by_groups in tensor_work(counters))
    exposed = _add_loop(clocks, facts, counters, gpu, in_turn=in_turn)
    if counters.blocks_depend:
        copied = bytes_between_phases(counters) / (gpu.memory_gb_per_s * 1e6) * gpu.clocks_per_ms
        return Workload(clocks, 1.0, exposed, copied, in_turn)
    return Workload(clocks, fill(facts, gpu), exposed, in_turn=in_turn)


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


def bytes_between_phases(counters: Counters) -> float:
    """Return the bytes that the blocks of the ranked size read and store before they wait for one
    another: copies of A and B, in another format or order.

    All bytes that are stored in addition to C must be such copies. Bulk stores are not counted;
    they are assumed to store as many bytes as A and B have.
    """
    counted, ranked = counters.shape, RANKED.shape
    stored = counters.global_store_sectors * SECTOR - 4 * counted.M * counted.K
    inputs, all_inputs = (4 * each.N * (each.M + each.K) for each in (counted, ranked))
    if any(opcode.startswith(_BULK_STORE) for opcode in counters.instructions):
        stored = inputs
    return 2 * max(stored, 0.0) / inputs * all_inputs


_BULK_STORE = "cp.async.bulk.global.shared"


def _add_loop(
    clocks: dict[Unit, float],
    facts: DisassembledKernel,
    counters: Counters,
    gpu: Gpu,
    *,
    in_turn: bool,
) -> float:
    """Add the clocks of units that the loop that computes keeps busy, from its machine code.

    Return the clocks in which nothing hides the latency of memory.
    """
    loop = hot_loop(facts, counters)
    if loop is None:
        return 0.0
    times = iterations(facts, counters) * scale(facts, counters) / gpu.multiprocessors
    for unit, busy in pipeline_clocks(loop.opcodes, gpu).items():
        clocks[unit] = times * busy
    code = loop_bytes(loop)
    if code > INSTRUCTION_CACHE:  # the warps of a block go through it together
        clocks[Unit.FETCH] = times / WARPS_PER_BLOCK * code / FETCHED
    spilled = times * local_passes(loop.opcodes)
    fenced = times * how_many(loop.opcodes, "MEMBAR") * FENCE_PASSES
    # Shuffles go through the data path of shared memory, one per clock, as measured on an H200.
    shuffled = times * how_many(loop.opcodes, "SHFL")
    clocks[Unit.L1] += (spilled + fenced + shuffled) / gpu.l1_passes
    home = spills_to(facts, gpu)
    on_to_l2 = times * local_passes(loop.opcodes, ("STL",)) if home is Unit.L1 else spilled
    clocks[Unit.L2] += on_to_l2 * LINE / L2_BYTES
    if home is Unit.DRAM:
        clocks[Unit.DRAM] += spilled * LINE / gpu.memory_bytes_per_clock
    warp_groups = any(by_groups for _, by_groups in tensor_work(counters))
    blocks = resident_blocks(facts, gpu)
    if not loop.waits or not blocks or (counters.blocks_depend and warp_groups):
        return 0.0
    executed = iterations(facts, counters)
    warps = facts.occupancy.warps * blocks // facts.occupancy.blocks
    share = scale(facts, counters) / gpu.multiprocessors / warps
    leave_l1 = home is not Unit.L1
    misses = new_sectors(facts, counters)
    memory = memory_latency(facts, counters, gpu)
    one = iteration(loop, leave_l1, misses, memory)
    outside = 0.0 if counters.blocks_depend else waits_around(loop, counters) * memory
    together = barriers_around(loop, executed, counters)
    all_warps = executed * one.clocks + outside + together * BARRIER
    all_warps += instructions_around(loop, counters)
    by_block = together or how_many(loop.opcodes, "BAR")  # else every warp waits for itself
    alike = blocks if by_block else warps
    at_once = warps // alike if by_block else warps
    pace = max(at_once / WARP_INSTRUCTIONS, 1.0)
    if by_block and executed:
        busy = Workload(clocks, in_turn=in_turn).total / (executed * share * warps / at_once)
        pace = max(pace, busy / sum(loop.opcodes.values()))
    waiting = iteration(loop, leave_l1, misses, memory, pace).waiting
    clocks[Unit.LATENCY] = all_warps * share
    return (executed * waiting + outside) * share / alike


def resident_blocks(facts: DisassembledKernel, gpu: Gpu) -> int:
    """Return how many blocks a multiprocessor holds at a time: a launch may have fewer of them."""
    columns, rows, _ = facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
    return min(facts.occupancy.blocks, -(-columns * rows // gpu.multiprocessors))


def memory_latency(facts: DisassembledKernel, counters: Counters, gpu: Gpu) -> float:
    """Return the clocks for a result from beyond the L1 cache.

    Blocks are started row by row of the grid. The blocks of one row share A in the L2 cache. B is
    too large to stay there until the next rows start, so it is shared only by blocks of one column
    that run at the same time.
    """
    if counters.blocks_depend:  # they choose their tiles themselves
        return L2_CACHE
    columns, rows, _ = facts.launch.grid(RANKED.shape.M, RANKED.shape.K)
    started = resident_blocks(facts, gpu) * gpu.multiprocessors
    share = 1 / min(max(started / columns, 1.0), rows)
    return share * DEVICE_MEMORY + (1 - share) * L2_CACHE


def new_sectors(facts: DisassembledKernel, counters: Counters) -> dict[int, float]:
    """Return, by source line, the share of sectors for which a warp waits longer than for the L1
    cache: it did not touch them shortly before. Where another warp did, it waits for the same
    results, for the warps of a block go through the same data side by side. Loads past the L1 cache
    find none there."""
    past = _past_l1(facts)
    return {
        line.line: max(line.global_new_sectors, line.global_first_sectors) / line.global_sectors
        for line in counters.lines
        if line.global_sectors and line.line not in past
    }


def loop_bytes(loop: CodeLoop) -> int:
    """Return how long the machine code of a loop is."""
    return sum(loop.opcodes.values()) * INSTRUCTION_BYTES


LINE = 128


def local_passes(opcodes: Mapping[str, int], names: tuple[str, ...] = ("LDL", "STL")) -> int:
    """Return the passes of the L1 cache that instructions take for local memory. Stores
    also reach the L2 cache."""
    return sum(
        count * (4 if "128" in opcode else 2 if ".64" in opcode else 1)
        for opcode, count in opcodes.items()
        if opcode.split(".")[0] in names
    )


FENCE_PASSES = 3
"""Clocks for which a memory fence keeps the data path of shared memory busy. Fitted to two kernels
of the tests on an H200, fence_every_step and divergent_halves."""


def spills_to(facts: DisassembledKernel, gpu: Gpu) -> Unit:
    """Return the memory that has room for the local memory of all resident threads."""
    occupied = facts.occupancy.blocks * facts.resources.shared_bytes
    bytes_used = facts.occupancy.warps * WARP * facts.resources.stack_bytes
    if bytes_used <= gpu.l1_bytes - occupied:
        return Unit.L1
    return Unit.L2 if bytes_used * gpu.multiprocessors <= gpu.l2_bytes else Unit.DRAM
