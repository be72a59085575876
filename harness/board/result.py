"""What all gradings of one author's program on one GPU model say together.

A program that is graded again, on the same GPU or on another, has the mean of its scores and not
the best: trying again until one is lucky gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.board.entry import Entry
from harness.board.places import Contestant
from harness.board.spread import Spreads, by_gpu
from harness.judge.estimates import Estimate, mean


@dataclass(frozen=True, slots=True)
class Result:
    """Of one author's program."""

    runs: Sequence[Entry]
    """In order of time."""
    contestant: Contestant

    @property
    def estimate(self) -> Estimate:
        return self.contestant.score

    @property
    def gpus(self) -> int:
        return len(self.contestant.on)

    def score(self) -> tuple[float, float, float]:
        """The score and its 95 % interval."""
        alone = self.runs[0].score if len(self.runs) == 1 else None
        ratio = alone or math.exp(self.estimate.value)  # alone, to the last digit
        return ratio, ratio * math.exp(-self.estimate.below), ratio * math.exp(self.estimate.above)


def results(runs: Iterable[Entry], spreads: Spreads) -> list[Result]:
    """runs: scored, in order of time. Best first; of equals whoever was there first."""
    programs: dict[tuple[str, str], list[Entry]] = {}
    for run in runs:
        programs.setdefault((run.author, run.code), []).append(run)
    found = [_result(several, spreads) for several in programs.values()]
    return sorted(found, key=lambda result: -result.estimate.value)


def _result(runs: Sequence[Entry], spreads: Spreads) -> Result:
    on = by_gpu(runs)
    spread = spreads.get(runs[0].cores)
    margin = spread.margin(len(on)) if spread else 0.0
    score = mean(list(on.values())).widened(margin)
    return Result(runs, Contestant(runs[0].code, score, on))
