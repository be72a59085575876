"""Values that follow from the counters of some blocks, and from the loops of the machine code."""

import re
from collections.abc import Callable, Sequence

from harness.compiling.occupancy import WARP
from harness.judge.explain.opcodes import Kind, count_of, kind_of, matrix_instruction, matrix_type
from harness.protocol.report import CodeLoop, Counters, DisassembledKernel, LineCounters
from problem.cases import RANKED

SECTOR = 32
"""The bytes of a sector of global memory."""


def l1_clocks(line: LineCounters) -> int:
    """Return the passes of shared memory and of the L1 cache, which share one data path. Data that
    is copied from one to the other goes through it once."""
    return line.shared_wavefronts + line.global_passes - line.copy_passes


def active_share(lines: Sequence[LineCounters]) -> float:
    """Return the mean share of a warp's lanes that are active: less than 1 where it diverges."""
    warps = sum(line.warp_instructions for line in lines)
    threads = sum(line.instructions for line in lines)
    return threads / (WARP * warps) if warps else 1.0


def _warps(counters: Counters, wanted: Callable[[str], object]) -> float:
    """Return how many warp instructions there would be of these opcodes without divergence."""
    return sum(count for each, count in counters.instructions.items() if wanted(each)) / WARP


def fma_warps(counters: Counters) -> float:
    """Return the warp instructions that add or multiply float32."""
    return _warps(counters, re.compile(r"(fma|add|sub|mul)\b.*\.f32").fullmatch)


def fused_warps(counters: Counters) -> float:
    """Return the warp instructions that multiply and add float32 at once."""
    return _warps(counters, re.compile(r"fma\b.*\.f32").fullmatch)


def stored_elements(counters: Counters) -> int:
    """Return how many elements the threads store to global memory, one or a vector at a time."""
    stores = (each for each in counters.instructions.items() if each[0].startswith("st.global"))
    return sum(
        count * (4 if ".v4" in each else 2 if ".v2" in each else 1) for each, count in stores
    )


def fp64_warps(counters: Counters) -> float:
    """Return the warp instructions that add or multiply float64."""
    return _warps(counters, re.compile(r"(fma|add|sub|mul)\b.*\.f64").fullmatch)


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
    return _warps(counters, matrix_instruction)


def hot_loop(facts: DisassembledKernel, counters: Counters | None) -> CodeLoop | None:
    """Return the loop that computes most. That is the one with the most tensor instructions of the
    types that were executed, since there may be another loop for small problems. Without such it is
    the one with the most multiply-adds."""
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


def instructions_around(loop: CodeLoop, counters: Counters) -> int:
    """Return the warp instructions of PTX outside of the lines of the loop that computes."""
    within = loop.source_lines
    around = (line for line in counters.lines if line.line not in within)
    return sum(line.warp_instructions for line in around) if within else 0


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
    barriers = _warps(counters, re.compile(r"bar(rier)?(\.cta)?\.sync").match)
    return max(barriers - times * count_of(loop.opcodes, "BAR"), 0.0)


def bytes_between_phases(counters: Counters) -> float:
    """Return the bytes that the blocks of the ranked size read and store before they wait for one
    another. These are copies of A and B, in another format or order.

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
