"""The time that one warp takes for an iteration of a loop if it has a multiprocessor to itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.judge.explain.opcodes import count_of
from harness.protocol.report import CodeLoop, Producer, Wait

LATENCY = {
    Producer.ARITHMETIC: 4,
    Producer.SPECIAL: 20,
    Producer.FP64: 8,
    Producer.TENSOR: 33,
    Producer.SHARED: 30,
    Producer.LOCAL: 40,
}
"""Clocks from the issue of an instruction to that of one which needs its result, on an H100.
Arithmetic, shared memory, L1 and tensor cores: "Dissecting the NVIDIA Hopper Architecture through
Microbenchmarking and Multiple Level Analysis". FP64 and special functions: microbenchmarks on an
H200, chains of DFMA and of MUFU."""

L2_CACHE, DEVICE_MEMORY = 500, 950
"""Clocks for a result from the L2 cache and from device memory while others use them, too; an idle
L2 cache answers in about 270. Fitted, not measured. Seven kernels of the tests wait most of the
time: barrier_every_step, past_l1, one_block_per_sm, static_shared_80_kb, read_only_path,
reduced_by_shuffles and phases. On an H200 they took what these two figures give, within 21 %."""

STORED_BEFORE = 480
"""Clocks for a value from local memory that the loop stores there, too. It is not in the L1 cache
before the L2 cache has it. Fitted to one kernel on an H200: local_array of the tests."""

L1_HIT = 41
"""Clocks for a result from the L1 cache, measured on an H200."""

BARRIER = 30
"""Clocks that a barrier takes after the last warp has arrived."""


_COPIES = 4
"""Iterations to follow: the last two differ by what an iteration takes when the loop is busy."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """The clocks that one iteration takes a warp, and how many of them it waits for memory."""

    clocks: float
    waiting: float


def iteration(
    loop: CodeLoop,
    spills_leave_l1: bool,
    misses: Mapping[int, float],
    memory: float,
    clocks_to_issue: float = 1,
) -> Iteration:
    """Follow a warp that waits for each result that it needs through some iterations.

    misses: the share of a line's loads that do not find their sectors in the L1 cache.
    memory: clocks for a result from beyond the L1 cache.
    clocks_to_issue: from one of its instructions to the next, where others issue theirs between.
    """
    missed = _missed(loop.waits, misses)
    stored = count_of(loop.opcodes, "STL") > 0

    def latency_of(wait: Wait) -> float:
        producer = wait.producer
        if producer is Producer.LOCAL and spills_leave_l1:
            producer = Producer.GLOBAL
        if producer is Producer.LOCAL and stored:
            return STORED_BEFORE
        if producer is not Producer.GLOBAL:
            return LATENCY[producer]
        share = missed.get(wait, 1.0)
        return share * memory + (1 - share) * L1_HIT

    size = sum(loop.opcodes.values())
    delays: dict[int, list[Wait]] = {}
    for wait in loop.waits:
        delays.setdefault(wait.used, []).append(wait)
    issued: list[float] = []
    now = waiting = 0.0
    for copy in range(_COPIES):
        waiting = 0.0
        for index in range(size):
            for wait in delays.get(index, ()):
                at = copy * size + wait.issued
                if at >= 0:
                    ready = issued[at] + latency_of(wait)
                    if wait.producer is Producer.GLOBAL:
                        waiting += max(ready - now, 0)
                    now = max(now, ready)
            issued.append(now)
            now += clocks_to_issue
    clocks = now - issued[(_COPIES - 1) * size] + BARRIER * count_of(loop.opcodes, "BAR")
    return Iteration(clocks, waiting)


def _missed(waits: Iterable[Wait], misses: Mapping[int, float]) -> dict[Wait, float]:
    """Return how probable it is that a load from global memory, or one that is under way with it,
    misses the L1 cache."""
    left = [wait for wait in waits if wait.producer is Producer.GLOBAL]
    found: dict[Wait, float] = {}
    while left:
        together = [wait for wait in left if wait.issued < left[0].used]
        lines = (1.0 if wait.line is None else misses.get(wait.line, 1.0) for wait in together)
        share = min(sum(lines), 1.0)
        found.update(dict.fromkeys(together, share))
        left = [wait for wait in left if wait not in found]
    return found
