"""How long one warp takes for an iteration of a loop when it has a multiprocessor to itself."""

from __future__ import annotations

from harness.protocol.report import CodeLoop, Producer

LATENCY = {
    Producer.ARITHMETIC: 4,
    Producer.SPECIAL: 20,
    Producer.FP64: 8,
    Producer.TENSOR: 33,
    Producer.SHARED: 30,
    Producer.LOCAL: 40,
    Producer.GLOBAL: 850,
}
"""Clocks from the issue of an instruction to that of one which needs its result, on an H100.
Arithmetic, shared memory, L1 and tensor cores: "Dissecting the NVIDIA Hopper Architecture through
Microbenchmarking and Multiple Level Analysis". Global memory is what a warp waits for on average
while others use the L2 cache and the memory, too (an idle L2 cache answers in about 270 clocks):
it was set so that two kernels with few warps are estimated as they were measured. FP64 and special
functions are assumptions."""

BARRIER = 30
"""Clocks that a barrier takes after the last warp has arrived."""

_COPIES = 4
"""Iterations to follow: the last two differ by what an iteration takes when the loop is busy."""


def iteration_clocks(loop: CodeLoop, spills_leave_l1: bool) -> float:
    """Return the clocks of one iteration, in which a warp waits for each result that it needs."""
    size = sum(loop.opcodes.values())
    barriers = sum(count for opcode, count in loop.opcodes.items() if opcode.startswith("BAR."))
    delays: dict[int, list[tuple[Producer, int]]] = {}
    for wait in loop.waits:
        delays.setdefault(wait.used, []).append((wait.producer, wait.issued))
    issued: list[int] = []
    now = 0
    for copy in range(_COPIES):
        for index in range(size):
            for producer, at in delays.get(index, ()):
                if copy * size + at >= 0:
                    local = producer is Producer.LOCAL and spills_leave_l1
                    latency = LATENCY[Producer.GLOBAL if local else producer]
                    now = max(now, issued[copy * size + at] + latency)
            issued.append(now)
            now += 1
    return now - issued[(_COPIES - 1) * size] + BARRIER * barriers
