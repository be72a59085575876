"""The rules that turn evidence into advice. The docstring of each says why it holds.

A rule applies only to what costs time: what it would save is taken off the unit that it loads. If
another unit is busier, nothing is saved, and there is no advice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from harness.compiling.occupancy import WARP
from harness.judge import figures
from harness.judge.explain.counts import (
    SECTOR,
    active_share,
    fma_warps,
    fused_warps,
    instructions_around,
    l1_clocks,
    stored_elements,
)
from harness.judge.explain.evidence import FENCE_PASSES, Evidence
from harness.judge.explain.explanation import Advice, Unit
from harness.judge.explain.gpu import (
    INSTRUCTION_CACHE,
    L2_BYTES,
    MMA_SYNC_SHARE,
    SUSTAINED,
    WARP_INSTRUCTIONS,
)
from harness.judge.explain.opcodes import (
    STORES,
    Kind,
    count_of,
    kind_of,
)
from harness.judge.explain.workload import (
    Workload,
    blocks_and_waves,
    loop_bytes,
    resident_blocks,
    spills_to,
    written_products,
)
from harness.protocol.report import LineCounters, Producer
from problem.cases import RANKED
from problem.launcher import BLOCK

MIN_GAIN = 1.05
"""Advice that promises less is not given: the model is not that exact."""

MAX_FINDINGS = 3


@dataclass(frozen=True, slots=True)
class Saving:
    """The finding of a rule: its sentence, and the work that would be left."""

    message: str
    left: Workload
    line: int | None = None
    see: str | None = None
    """The file that shows the remedy, if it is not the file of the rule; empty if none does."""
    remedy: str | None = None
    """The remedy, if it is not the remedy of the rule."""


Find = Callable[[Evidence], Saving | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of advice.

    see: the file of solutions/ that shows the remedy.
    min_gain: the smallest gain for which the advice is given.
    find: returns the finding of the rule, if any.
    """

    name: str
    remedy: str
    see: str | None
    min_gain: float
    find: Find


RULES: list[Rule] = []


def _rule(
    name: str, remedy: str, see: str | None = None, min_gain: float = MIN_GAIN
) -> Callable[[Find], Find]:
    """Return a decorator that adds a function to the rules."""

    def add(find: Find) -> Find:
        RULES.append(Rule(name, remedy, see, min_gain, find))
        return find

    return add


PASSES_AT_BEST = 1.5
"""The passes of a request of one float a thread. In a block of 16x16 threads a warp lies over two
rows. So of two operands one comes out of two lines and the other out of one."""

ROWS_OF_A_WARP = 2
"""Rows of such a block under a warp: what all threads of a row read comes out of two lines."""

SECTORS_OF_A_LINE = 4


@_rule("uncoalesced", "let neighbouring threads read neighbouring addresses", "03_coalesced")
def _uncoalesced(evidence: Evidence) -> Saving | None:
    """The L1 cache looks up one line of 128 bytes per clock, however few of them are wanted."""

    def wasted(line: LineCounters) -> float:
        few = line.global_passes <= ROWS_OF_A_WARP * line.global_requests
        if few or line.global_sectors < 2 * line.global_min_sectors:
            return 0.0
        full = line.global_min_sectors / SECTORS_OF_A_LINE
        least = max(PASSES_AT_BEST * line.global_requests, full)
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
        evidence.without_passes(passes),
        line.line,
    )


OFTEN_READ = 6
"""A naive kernel of 16x16 threads reads each sector 8 times, or a little less often on a line that
also stores."""

WAVEFRONTS_A_REQUEST = 0.75
"""Wavefronts that take the place of a request. Of two operands, one is read a float at a time, the
other four at a time, in two wavefronts."""

LATENCY_OF_02 = 0.42
"""The share of the latency of 03_coalesced that is left in 02_shared_tile."""


@_rule("read-again", "keep a tile of A and of B in shared memory", "02_shared_tile")
def _read_again(evidence: Evidence) -> Saving | None:
    """Shared memory can keep data that a block reads from global memory more than once."""
    if evidence.loop_mix.get(Kind.SHARED_LOAD) or not evidence.loop_mix.get(Kind.GLOBAL_LOAD):
        return None

    def cost(line: LineCounters) -> float:
        often = line.global_sectors >= OFTEN_READ * max(1, line.global_first_sectors)
        return float(line.global_passes) if often else 0.0

    found = evidence.costliest(cost)
    if found is None:
        return None
    line, passes = found
    again = [each for each in evidence.counters.lines if cost(each) > 0]
    tiles = sum(each.global_first_sectors for each in again) / 4 * 2  # read, and stored
    loads = sum(WAVEFRONTS_A_REQUEST * each.global_requests for each in again)
    # Sectors of arrays that are no arguments are not distinguished.
    message = "the products read an array that lies in a variable,"
    if line.global_first_sectors:
        times = line.global_sectors / line.global_first_sectors
        message = f"a block reads each sector {times:.0f} times"
    left = evidence.without_passes(passes - tiles - loads)
    left = left.shortened(1 - LATENCY_OF_02, Unit.LATENCY)
    return Saving(f"{message} from global memory", left, line.line)


@_rule(
    "bank-conflicts",
    "pad the rows, or let a thread's columns lie further apart",
    "10_no_bank_conflicts",
)
def _bank_conflicts(evidence: Evidence) -> Saving | None:
    """Lanes that want different words of one bank are served one after the other."""
    found = evidence.costliest(
        lambda line: float(line.shared_wavefronts - line.shared_min_wavefronts)
    )
    if found is None:
        return None
    line, wavefronts = found
    figure = line.shared_wavefronts / line.shared_requests
    ideal = line.shared_min_wavefronts / line.shared_requests
    return Saving(
        f"shared memory takes {figure:.1f} wavefronts per request where {ideal:.1f} would do",
        evidence.without_passes(wavefronts),
        line.line,
    )


SEVERAL_OUTPUTS = "09_vector_loads"
"""The file for authors whose threads compute several outputs already."""

WAVEFRONTS_OF_FLOATS, WAVEFRONTS_OF_VECTORS = 0.25, 12 / 64
"""Wavefronts for each multiply-add of a warp with 8x8 outputs per thread, if most loads bring one
float per thread, and if they bring four. A load of A takes two, and one of B four."""

LATENCY_OF_06 = 0.27
"""The share of the latency of 02_shared_tile that is left in 06_outputs_per_thread: one wait serves
the products of all outputs."""


@_rule(
    "few-products-per-load", "give each thread a tile of outputs, 8x8 at best", "08_block_tile_2d"
)
def _few_products_per_load(evidence: Evidence) -> Saving | None:
    """A value that is loaded from shared memory into a register serves as many products as the
    thread has outputs in that row or column."""
    fma, shared_loads = fma_warps(evidence.counters), evidence.loop_mix.get(Kind.SHARED_LOAD, 0)
    if evidence.tensor_work or not fma or not shared_loads:
        return None
    narrow = 2 * evidence.opcodes.get("LDS", 0) > shared_loads
    ideal = WAVEFRONTS_OF_FLOATS if narrow else WAVEFRONTS_OF_VECTORS
    loads = [each for each in evidence.counters.lines if each.shared_requests]
    least = sum(each.shared_min_wavefronts for each in loads)
    if least < 2 * ideal * fma:
        return None
    left = evidence.without_passes(least - ideal * fma)
    left = left.shortened(1 - LATENCY_OF_06, Unit.LATENCY)
    copies = shared_loads / evidence.loop_mix[Kind.FMA]
    if copies > WAVEFRONTS_OF_FLOATS:
        left = left.shortened(1 - 1 / (1 + copies), Unit.ISSUE)
    outputs = evidence.facts.launch.tile_rows * evidence.facts.launch.tile_columns
    return Saving(
        f"{least / fma:.2g} wavefronts of shared memory for each multiply-add of a warp, where "
        f"{ideal:.2g} would do",
        left,
        max(loads, key=lambda each: each.shared_min_wavefronts).line,
        SEVERAL_OUTPUTS if outputs > prod(BLOCK) else None,
    )


FEWER_LOADS = 0.75
"""The share of the instructions that is saved: one takes the place of four."""


@_rule(
    "narrow-loads",
    "arrange the tiles so that a thread reads four floats at a time, with A transposed",
    "09_vector_loads",
)
def _narrow_loads(evidence: Evidence) -> Saving | None:
    """One 128-bit load brings what takes four 32-bit loads, in a fraction of the instructions."""
    loop, narrow = evidence.loop, evidence.opcodes.get("LDS", 0)
    fma = evidence.loop_mix.get(Kind.FMA, 0)
    loads = evidence.loop_mix.get(Kind.SHARED_LOAD, 0)
    if loop is None or evidence.tensor_work or not loads or fma < 2 * loads or 2 * narrow <= loads:
        return None
    saved = FEWER_LOADS * narrow / fma * fma_warps(evidence.counters)
    left = evidence.without_passes(saved / 2)
    lines = {line for together in loop.loads_around for line in together}
    copying = {op for each in evidence.facts.lines if each.line in lines for op in each.opcodes}
    if "LDG.E" in copying and "LDG.E.128" not in copying:
        saved += FEWER_LOADS * instructions_around(loop, evidence.counters)
    return Saving(
        f"{narrow} of {loads} shared loads of the loop bring 4 bytes per thread",
        left.without(Unit.ISSUE, saved * evidence.ratio / WARP_INSTRUCTIONS),
        max(evidence.counters.lines, key=lambda each: each.shared_requests).line,
    )


PRODUCTS_OF_15 = 0.94
"""Share of multiply-adds in the loop of 15_thread_tile_16x8."""


@_rule(
    "overhead",
    "fewer loads for each product (16x8 outputs per thread), addresses out of the loop",
    "15_thread_tile_16x8",
)
def _overhead(evidence: Evidence) -> Saving | None:
    """Every instruction that does not multiply takes an issue slot from one that would."""
    fma, everything = evidence.loop_mix.get(Kind.FMA, 0), evidence.loop_size
    if evidence.loop is None or evidence.tensor_work or not fma:
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
        f"{figures.percent(PRODUCTS_OF_15)} is possible",
        evidence.work.shortened(max(1 - share / PRODUCTS_OF_15, 0.0), Unit.ISSUE),
        evidence.most_in_loop(Kind.OTHER),
    )


@_rule("large-loop", "unroll less")
def _large_loop(evidence: Evidence) -> Saving | None:
    """Instructions that do not fit into the instruction cache come from the L2 cache, slowly."""
    if evidence.loop is None or Unit.FETCH not in evidence.work.clocks:
        return None
    size = loop_bytes(evidence.loop)
    return Saving(
        f"the loop has {size >> 10} KiB of instructions, and the instruction cache holds "
        f"{INSTRUCTION_CACHE >> 10}",
        evidence.work.shortened(1.0, Unit.FETCH),
        evidence.most_in_loop(Kind.FMA),
    )


FEW_OTHERS = 0.9
"""The share of multiply-adds from which there is little else to take out of a loop."""

CLOCKS_OF_16 = 1.06
"""Clocks for each instruction in the loop of 16_register_banks."""


@_rule(
    "register-banks",
    "compute the products in serpentine order, and store copies of the sums, not the sums",
    "16_register_banks",
)
def _register_banks(evidence: Evidence) -> Saving | None:
    """Each of the two banks of the register file gives one register a clock."""
    fma, everything = evidence.loop_mix.get(Kind.FMA, 0), evidence.loop_size
    if evidence.loop is None or evidence.tensor_work or fma < FEW_OTHERS * everything:
        return None
    figure = evidence.loop.issue_clocks / everything
    if figure <= CLOCKS_OF_16:
        return None
    return Saving(
        f"instructions wait for operands in the same bank of registers: {figure:.2f} clocks "
        "for each",
        evidence.work.shortened(1 - CLOCKS_OF_16 / figure, Unit.ISSUE),
        evidence.most_in_loop(Kind.FMA),
    )


CONSTANT_INDICES = "unroll the loops over it: registers hold only arrays with constant indices"

SPILLED_TO = {
    Unit.L1: "the L1 cache",
    Unit.L2: "the L2 cache, because they do not fit into L1",
    Unit.DRAM: "device memory, because they fit into no cache",
}


@_rule("spills", "fewer outputs per thread, or a larger register budget by __launch_bounds__")
def _spills(evidence: Evidence) -> Saving | None:
    """Values that do not fit into registers are stored and loaded through the L1 cache."""
    used = evidence.facts.resources
    spilled = evidence.loop_mix.get(Kind.LOCAL, 0)
    if not spilled:
        return None
    code = {
        opcode: count
        for opcode, count in evidence.opcodes.items()
        if kind_of(opcode) is not Kind.LOCAL
    }
    what = "move elements of a local array, whose indices are not constant,"
    if used.spill_load_bytes:
        what = f"move registers ({used.spill_store_bytes} B stored, "
        what += f"{used.spill_load_bytes} B loaded per thread)"
    share = sum(code.values()) / evidence.loop_size
    waits_left = min(evidence.waits_without(Producer.LOCAL) / share, 1.0)
    return Saving(
        f"{spilled} of the loop's {evidence.loop_size} instructions {what} "
        f"from and to {SPILLED_TO[spills_to(evidence.facts, evidence.gpu)]}",
        evidence.with_loop(code).shortened(1 - waits_left, Unit.LATENCY),
        evidence.most_in_loop(Kind.LOCAL),
        remedy=None if used.spill_load_bytes else CONSTANT_INDICES,
    )


@_rule("fp64", "write constants with f (1.0f), and keep the sum in a float")
def _double_precision(evidence: Evidence) -> Saving | None:
    """A float that meets a double is converted, and both units are slower than those of FP32."""

    def is_double(opcode: str) -> bool:
        converts = kind_of(opcode) is Kind.SPECIAL and "F64" in opcode.split(".")
        return converts or kind_of(opcode) is Kind.FP64

    code = {op: count for op, count in evidence.opcodes.items() if not is_double(op)}
    slow = evidence.loop_size - sum(code.values())
    if not slow:
        return None
    fused = evidence.opcodes.get("DFMA", 0)
    return Saving(
        f"{slow} of the loop's {evidence.loop_size} instructions compute in "
        "double (FP64) or convert from and to it",
        evidence.with_loop(code | {"FFMA": code.get("FFMA", 0) + fused} if fused else code),
        evidence.most(is_double),
    )


INSTRUCTIONS_OF_A_DIVISION = 15
INSTRUCTIONS_IN_PLACE_OF_IT = 2
"""A comparison and a selection."""


@_rule("integer-division", "count instead (if (++i == n) i = 0), or divide before the loop")
def _integer_division(evidence: Evidence) -> Saving | None:
    """No unit divides integers: each / or % by a value of run time takes about 15 instructions."""
    code = dict(evidence.opcodes)
    special = [opcode for opcode in code if opcode.startswith(("I2F", "F2I", "MUFU.RCP"))]
    names = {opcode.partition(".")[0] for opcode in special}
    divisions = sum(count for opcode, count in code.items() if opcode.startswith("IMAD.HI"))
    if not divisions or not {"I2F", "F2I"} <= names:
        return None
    for opcode in special:
        del code[opcode]
    saved = divisions * (INSTRUCTIONS_OF_A_DIVISION - INSTRUCTIONS_IN_PLACE_OF_IT)
    whole = {opcode: count for opcode, count in code.items() if kind_of(opcode) is Kind.OTHER}
    share = min(1.0, saved / max(1, sum(whole.values())))
    for opcode, count in whole.items():
        code[opcode] = max(round(count * (1 - share)), 0)
    part = min(1.0, divisions * INSTRUCTIONS_OF_A_DIVISION / evidence.loop_size)
    return Saving(
        f"an integer division or remainder takes about {figures.percent(part)} of the "
        "loop's instructions",
        evidence.with_loop(code),
        evidence.most(lambda opcode: opcode.startswith(("IMAD.HI", "I2F", "F2I"))),
    )


@_rule("special-functions", "compute them once, before the loop, or from multiply-adds")
def _special_functions(evidence: Evidence) -> Saving | None:
    """Roots, reciprocals, sines and conversions leave a multiprocessor at 16 in a clock."""
    code = {op: n for op, n in evidence.opcodes.items() if kind_of(op) is not Kind.SPECIAL}
    special = evidence.opcodes.keys() - code.keys()
    slow = evidence.loop_size - sum(code.values())
    if not slow:
        return None
    return Saving(
        f"{slow} of the loop's {evidence.loop_size} instructions "
        f"are special functions or conversions ({', '.join(sorted(special))})",
        evidence.with_loop(code),
        evidence.most(lambda opcode: kind_of(opcode) is Kind.SPECIAL),
    )


OFTEN_STORED = 2.0


@_rule("stores", "add up in a register, and store once, after the loop")
def _stores_in_loop(evidence: Evidence) -> Saving | None:
    """Each store goes to the L2 cache; a sum in a register costs nothing until it is complete."""
    counters = evidence.counters
    if counters.blocks_depend or not count_of(evidence.opcodes, *STORES):
        return None
    storing = {each.line for each in evidence.facts.lines if count_of(each.opcodes, *STORES)}
    lines = [each for each in counters.lines if each.line in storing and each.global_sectors]
    needed = counters.flop / (2 * counters.shape.N) / SECTOR * 4
    stored = sum(each.global_sectors for each in lines)
    if stored < OFTEN_STORED * needed:
        return None
    passes = sum(each.global_passes for each in lines) * (1 - needed / stored)
    bytes_saved = (stored - needed) * SECTOR
    return Saving(
        f"each element of C is stored or changed {stored / needed:.0f} times",
        evidence.without_passes(passes).without(Unit.L2, bytes_saved / L2_BYTES * evidence.ratio),
        max(lines, key=lambda each: each.global_sectors).line,
    )


@_rule(
    "fences",
    "fence once, before other blocks are signalled; __syncthreads() orders a block's accesses",
)
def _fences(evidence: Evidence) -> Saving | None:
    """A memory fence waits until the warp's accesses before it are done."""
    count = count_of(evidence.opcodes, "MEMBAR")
    if not count:
        return None
    clocks = evidence.rounds * count * FENCE_PASSES / evidence.gpu.l1_passes
    return Saving(
        f"{count} of the loop's {evidence.loop_size} instructions are fences",
        evidence.work.without(Unit.L1, clocks),
        evidence.most(lambda opcode: opcode.startswith("MEMBAR")),
    )


MORE_OUTPUTS = "give each thread several outputs, or fetch the next tile ahead"
LESS_SHARED = "drop shared memory that is not needed, or take smaller tiles: more blocks fit then"
MORE_BLOCKS = "launch more blocks (a smaller tile in the launch line)"


@_rule(
    "latency",
    "fewer registers, or fetch the next tile while this one is multiplied",
    "11_double_buffering",
)
def _few_warps(evidence: Evidence) -> Saving | None:
    """A multiprocessor hides the wait of one warp only behind the work of others."""
    work, room = evidence.work, evidence.facts.occupancy
    if work.busiest is not Unit.LATENCY or evidence.loop is None or not room.warps:
        return None
    blocks = resident_blocks(evidence.facts, evidence.gpu)
    warps = room.warps * blocks // room.blocks
    latency = work.clocks[Unit.LATENCY]
    limit: str = room.limited_by
    remedy = None
    if blocks < room.blocks:
        limit, remedy = "the number of blocks of the launch", MORE_BLOCKS
    elif limit == "shared memory":
        remedy = LESS_SHARED
    elif warps == room.max_warps:
        remedy = MORE_OUTPUTS
    needed, hidden = float(room.max_warps), 0.5
    has_room = remedy in (LESS_SHARED, MORE_BLOCKS)
    if has_room:
        most = float(room.max_warps if limit == "shared memory" else room.warps)
        others = max(busy for unit, busy in work.clocks.items() if unit is not Unit.LATENCY)
        needed = min(most, latency * warps / others)
        hidden = warps / needed
    left = work.without(Unit.LATENCY, latency * (1 - hidden))
    return Saving(
        f"{warps} warps on a multiprocessor (occupancy "
        f"{figures.percent(warps / room.max_warps)}, limited by {limit}) do not hide the "
        f"latency: a warp takes {latency * warps / evidence.rounds:.0f} clocks for an iteration of "
        f"{evidence.loop_size} instructions",
        replace(left, exposed=left.exposed * hidden) if has_room else left,
        evidence.most_in_loop(Kind.GLOBAL_LOAD),
        see="" if has_room else None,
        remedy=remedy,
    )


@_rule(
    "divergence",
    "let whole warps take the same branch: decide by the row or the warp, or select values",
)
def _divergence(evidence: Evidence) -> Saving | None:
    """A warp whose threads diverge executes each path, with only some of its threads active."""
    found = evidence.costliest(lambda line: line.warp_instructions - line.instructions / WARP)
    if found is None:
        return None
    line, _ = found
    passes = sum(
        l1_clocks(each) * (1 - each.instructions / (WARP * each.warp_instructions))
        for each in evidence.counters.lines
        if each.warp_instructions
    )
    lanes = line.instructions / line.warp_instructions
    idle = 1 - active_share(evidence.counters.lines)
    units = (Unit.ISSUE, Unit.FMA, Unit.INTEGER, Unit.LATENCY)
    return Saving(
        f"{lanes:.0f} of a warp's {WARP} threads are active: they take different branches",
        evidence.without_passes(passes).shortened(idle, *units),
        line.line,
    )


NEEDLESS = 3.5
"""So many multiply-adds for each product that most are needless. Sums of twice the precision take
two."""


@_rule(
    "needless-products",
    "name the tile that a block computes in the launch line, such as // solve: tile=64x64",
)
def _needless_products(evidence: Evidence) -> Saving | None:
    """Return what is saved if blocks no longer multiply zeros outside C. Most do so if the tile of
    the launch line is too small."""
    counters = evidence.counters
    done, needed = WARP * fused_warps(counters), counters.flop / 2
    if done < NEEDLESS * needed or done < 2 * counters.shape.N * stored_elements(counters):
        return None  # of few busy blocks, one stores all that it computes
    return Saving(
        f"{done / needed:.3g} multiply-adds for each that C needs, as if a block computed more "
        "than the tile of the launch line",
        evidence.work.shortened(1 - needed / done, *Unit),
    )


@_rule(
    "last-wave",
    "split the last tiles among the idle multiprocessors, or choose another tile",
    "17_split_tail",
    min_gain=1.02,
)
def _last_wave(evidence: Evidence) -> Saving | None:
    """In the last wave of blocks some multiprocessors have nothing to do."""
    if evidence.counters.blocks_depend:  # they need not be equally long
        return None
    blocks, waves = blocks_and_waves(evidence.facts, evidence.gpu)
    return Saving(
        f"{blocks} blocks fill the GPU {waves:.2f} times, the last wave "
        f"{figures.percent(waves % 1)}",
        replace(evidence.work, fill=1.0),
    )


BUSY = 0.73
REACHED_BY_33 = 0.676
"""The share of the peak at the highest clock that 33 reaches on an H100, in 1.71 ms."""


@_rule(
    "tensor-cores",
    "split each float in two or three BF16 and multiply these on the tensor cores",
    "33_wgmma_two_phase",
)
def _tensor_cores(evidence: Evidence) -> Saving | None:
    """If the FP32 units are the limit, only tensor cores are faster: three products of BF16 keep
    the accuracy of FP32."""
    peak = evidence.gpu.tensor_macs("BF16")
    busy = evidence.work.clocks[Unit.FMA] / evidence.work.total
    if evidence.tensor_work or evidence.gpu.number != 90 or peak is None or busy < BUSY:
        return None
    macs = 3 * RANKED.shape.flop / 2 / evidence.gpu.multiprocessors
    return Saving(
        f"the FP32 units are busy {figures.percent(busy)} of the time, so other changes give at "
        f"most {1 / busy:.2f}×; the tensor cores do nothing",
        Workload({Unit.TENSOR: macs / peak / REACHED_BY_33}),
    )


@_rule("mma-sync", "wgmma, with A and B in shared memory", "32_wgmma_split_while_loading")
def _old_tensor_path(evidence: Evidence) -> Saving | None:
    """On sm_90 mma.sync reaches about 63 % of the tensor cores' peak, and wgmma more."""
    work = evidence.work
    if evidence.gpu.number != 90 or Unit.TENSOR not in work.clocks:
        return None
    if any(by_groups for _, by_groups in evidence.tensor_work):
        return None
    loads = evidence.loop_mix.get(Kind.SHARED_LOAD, 0)
    left = work.shortened(1 - MMA_SYNC_SHARE / SUSTAINED, Unit.TENSOR)
    left = left.shortened(loads / (evidence.loop_size or 1), Unit.ISSUE)
    return Saving(
        "the products go through mma.sync, warp by warp",
        replace(left, in_turn=False),
    )


@_rule(
    "tf32-products",
    "split each float in two or three BF16, or in two FP16 with a scale",
    "31_mma_bf16x3",
)
def _slow_tensor_type(evidence: Evidence) -> Saving | None:
    """The tensor cores multiply BF16 and FP16 at twice the rate of TF32."""
    work = evidence.tensor_work
    slow = work.get(("TF32", False), 0.0) + work.get(("TF32", True), 0.0)
    peak, faster = (evidence.gpu.tensor_macs(kind) for kind in ("TF32", "BF16"))
    if not slow or peak is None or faster is None:
        return None
    share = slow / sum(work.values())
    return Saving(
        f"{written_products(_products(evidence, slow))} products of TF32 for each useful one",
        evidence.work.shortened(share * (1 - peak / faster), Unit.TENSOR),
    )


def _products(evidence: Evidence, macs: float) -> float:
    """Return how many products these counted multiply-adds are for each useful one."""
    at_ranked_size = macs * evidence.ratio * evidence.gpu.multiprocessors
    return at_ranked_size * 2 / RANKED.shape.flop


MANY_PRODUCTS = 2.5
"""Products for each useful one from which two or more are corrections."""


@_rule(
    "equal-products",
    "take FP16 for the first product and INT8, at twice the rate, for the corrections",
    "36_wgmma_one_accumulator",
)
def _equal_products(evidence: Evidence) -> Saving | None:
    """Products with the low parts only correct the first, and need a few bits of each factor."""
    kinds = {kind for kind, by_groups in evidence.tensor_work if by_groups}
    if len(kinds) != 1 or not kinds <= {"BF16", "FP16"}:
        return None
    kind = kinds.pop()
    peak, faster = (evidence.gpu.tensor_macs(each) for each in (kind, "INT8"))
    products = _products(evidence, sum(evidence.tensor_work.values()))
    if peak is None or faster is None or products < MANY_PRODUCTS:
        return None
    saved = (products - 1) / products * (1 - peak / faster)
    return Saving(
        f"{written_products(products)} products of {kind} for each useful one, of which all but "
        "one are corrections",
        evidence.work.shortened(saved, Unit.TENSOR),
    )


@_rule(
    "split-in-loop",
    "split A and B once, in a phase of its own, and let the products read the parts",
    "33_wgmma_two_phase",
)
def _split_in_loop(evidence: Evidence) -> Saving | None:
    """Splitting floats in the loop of the products takes issue slots, for every tile again."""
    tensor = evidence.loop_mix.get(Kind.TENSOR, 0)
    others = evidence.loop_size - tensor
    if not tensor or others < 32 * tensor or Unit.TENSOR not in evidence.work.clocks:
        return None
    if evidence.loop is None or not evidence.loop_mix.get(Kind.GLOBAL_LOAD):
        return None  # nothing comes here to be split
    left = evidence.work.shortened(0.9, Unit.ISSUE)
    return Saving(
        f"{others} other instructions in the loop for {tensor} matrix instructions",
        left.shortened(0.5, Unit.L2, Unit.L1),  # the tiles can be larger
        evidence.loop.first_line,
    )


OTHERS_OF_31 = 4.0
"""Other instructions for each product that 31_mma_bf16x3 comes close to."""


@_rule(
    "tensor-issue",
    "split A and B once while they are stored, copy 16 bytes at a time, and let each fragment "
    "serve more products (larger warp tiles)",
    "31_mma_bf16x3",
)
def _tensor_issue(evidence: Evidence) -> Saving | None:
    """Each instruction that is not a product takes an issue slot of the tensor cores' warps."""
    tensor = evidence.loop_mix.get(Kind.TENSOR, 0)
    others = evidence.loop_size - tensor
    if not tensor or evidence.work.busiest not in (Unit.ISSUE, Unit.INTEGER):
        return None
    if others <= OTHERS_OF_31 * tensor:
        return None
    share = (1 + OTHERS_OF_31) * tensor / evidence.loop_size
    return Saving(
        f"{others} other instructions in the loop for {tensor} products on the tensor cores "
        "take the issue slots",
        evidence.work.shortened(1 - share, Unit.ISSUE, Unit.INTEGER, Unit.LATENCY),
        evidence.most_in_loop(Kind.OTHER),
    )


@_rule(
    "waits",
    "fetch the next tile while this one is multiplied: two buffers, or async copies",
    "11_double_buffering",
)
def _waits(evidence: Evidence) -> Saving | None:
    """While every block waits for its next tile, no unit has anything to do."""
    work, blocks = evidence.work, evidence.facts.occupancy.blocks
    if not work.exposed or evidence.loop_mix.get(Kind.COPY):  # fetched ahead already
        return None
    line = evidence.costliest(lambda each: each.global_requests)
    without = work.without(Unit.LATENCY, work.exposed)
    return Saving(
        f"the {blocks} blocks of a multiprocessor wait for global memory at the same time"
        if blocks > 1
        else "the only block of a multiprocessor waits for global memory",
        replace(without, exposed=0.0),
        line[0].line if line else None,
    )


# ---------------------------------------------------------------------------------- which findings

FIRST = ("spills",)
"""Rules that come before those with larger gains: their findings distort those of the others."""

MORE_A_THREAD = {"few-products-per-load", "overhead", "narrow-loads", "tensor-issue"}
LESS_A_THREAD = {"spills", "latency"}
CONFLICTING_RULES = {
    **dict.fromkeys(MORE_A_THREAD, LESS_A_THREAD),
    **dict.fromkeys(LESS_A_THREAD, MORE_A_THREAD),
}
"""Rules that ask for more outputs per thread, and rules that ask for fewer registers. Of two
conflicting rules, only the first gives advice."""

INCLUDES = {
    "spills": {"tensor-cores", "latency"},
    "integer-division": {"overhead", "special-functions"},
    "fp64": {"overhead", "special-functions"},
    "special-functions": {"overhead"},
    "divergence": {"overhead", "few-products-per-load"},
    "split-in-loop": {"tensor-issue"},
    "latency": {"waits"},
}
"""By rule, the other rules whose findings follow from its own, and are not repeated."""


def advice(evidence: Evidence, rules: Sequence[Rule] = RULES) -> tuple[Advice, ...]:
    """Return the findings with at least the gain that their rules ask for, the largest first."""
    savings: dict[Rule, Saving] = {}
    for rule in rules:
        saving = rule.find(evidence)
        if saving is not None and evidence.work.total / saving.left.total >= rule.min_gain:
            savings[rule] = saving
    _join_patterns(savings, evidence.work)
    found = [_advice(evidence, rule, saving) for rule, saving in savings.items()]
    first = (*FIRST, "latency") if evidence.work.waits_most else FIRST
    found.sort(key=lambda each: (each.rule not in first, -each.gain))
    included = {name for each in found for name in INCLUDES.get(each.rule, ())}
    given: list[Advice] = []
    for each in found:
        conflicting = CONFLICTING_RULES.get(each.rule, set())
        if each.rule not in included and not any(other.rule in conflicting for other in given):
            given.append(each)
    return tuple(sorted(given, key=lambda each: -each.gain)[:MAX_FINDINGS])


def _join_patterns(savings: dict[Rule, Saving], work: Workload) -> None:
    """Make one finding of two that one line has for one reason. Its indices are the wrong way round
    in global memory and in shared memory."""
    pair = [rule for rule in savings if rule.name in ("uncoalesced", "bank-conflicts")]
    if len(pair) < 2 or savings[pair[0]].line != savings[pair[1]].line:
        return
    left = work
    for unit, clocks in work.clocks.items():
        after = sum(savings[rule].left.clocks[unit] for rule in pair)
        left = left.without(unit, 2 * clocks - after)
    kept, gone = sorted(pair, key=lambda rule: savings[rule].left.total)
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
        cost=1 - 1 / gain,
        gain=gain,
        remedy=saving.remedy or rule.remedy,
        see=(rule.see if saving.see is None else saving.see) or None,
    )
