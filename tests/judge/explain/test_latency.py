"""The clocks of an iteration, from the waits of its loop."""

from harness.judge.explain.latency import iteration
from harness.protocol.report import CodeLoop, Producer, Wait


def test_a_load_waits_for_the_misses_of_those_under_way_with_it() -> None:
    """A warp needs the results of both loads, so either miss delays it."""
    waits = (Wait(Producer.GLOBAL, 0, 2, 7), Wait(Producer.GLOBAL, 1, 3, 8))
    loop = CodeLoop(first_line=7, last_line=8, opcodes={"LDG": 2, "FFMA": 2}, waits=waits)

    def clocks(first: float, second: float) -> float:
        return iteration(loop, False, {7: first, 8: second}, memory=1000).clocks

    assert clocks(0.25, 0.5) == clocks(0.75, 0.0) > clocks(0.5, 0.0)
    assert clocks(0.75, 0.75) == clocks(1.0, 0.0)
