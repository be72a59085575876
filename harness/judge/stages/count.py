"""Count: what would the memory system do? Only the CPU device can tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.judge.grading import Grading, launch_inputs
from harness.judge.stages.compile import Disassembling, Loading
from harness.judge.steps import Place, Steps
from harness.protocol.compiler import Disassembled
from harness.protocol.device import Count, Counted, Refusal, Uncounted
from harness.protocol.request import Fault
from problem.cases import Case
from problem.problem import Problem

COUNTED_BLOCKS = 2
"""Blocks on which accesses are counted: that takes seconds even for a large kernel."""


@dataclass(frozen=True, slots=True)
class Counting:
    """The step that counts the accesses of some blocks."""

    place: Place
    problem: Problem = field(compare=False)
    case: Case
    seed: int
    seconds: float
    disassembling: Disassembling = field(compare=False)
    loading: Loading | None = field(compare=False)

    def run(self, steps: Steps) -> Counted | Uncounted | Refusal | Fault:
        if self.loading is not None:
            ready = steps.get(self.loading)
            if isinstance(ready, Refusal | Fault):
                return ready
        known = steps.get(self.disassembling)
        matrices = self.problem.draw(self.case, self.seed)
        request = Count(
            inputs=launch_inputs(self.problem, self.case, matrices),
            max_blocks=COUNTED_BLOCKS,
            code=known.kernel.lines if isinstance(known, Disassembled) else (),
            seconds=self.seconds,
        )
        return steps.device(self.place).ask(request)


def start_counting(grading: Grading) -> None:
    """Start to count on the CPU device next to a GPU."""
    if grading.session.cpu_sanitizer is not None and not grading.quick:
        grading.steps.start(_counting(grading, grading.problem.counting_case(grading.seed)))


def count_accesses(grading: Grading) -> None:
    """Count the accesses of a full grading."""
    if not grading.quick:
        count(grading, grading.problem.counting_case(grading.seed))


def count(grading: Grading, case: Case) -> None:
    """Count the accesses in one case. What few blocks leave in C is not compared here."""
    counted = grading.steps.get(_counting(grading, case))
    grading.counters = counted.counters if isinstance(counted, Counted) else None
    if isinstance(counted, Refusal | Fault):
        grading.why_uncounted = f"its accesses could not be counted: {counted.message}"


def _counting(grading: Grading, case: Case) -> Counting:
    on_cpu = grading.session.cpu_sanitizer is not None
    place = Place.CPU_SANITIZER if on_cpu else Place.DEVICE
    return Counting(
        place,
        grading.problem,
        case,
        grading.seed,
        grading.options.counting_seconds,
        Disassembling(grading.kernel),
        Loading(place, grading.kernel) if on_cpu else None,
    )
