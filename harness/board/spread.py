"""How much the GPUs of one model differ, as far as gradings of one program on several of them tell.

Kernels near the power limit find one GPU faster than its twin, and cuBLAS beside them does not, so
that a score measured on one GPU is not that of the model. Kernels on CUDA cores and those on tensor
cores draw different power, and each kind has a spread of its own.

What a board has measured is weighed with what was known before, as two variances with their
degrees of freedom (the scaled inverse chi-square prior; e.g. Smyth, Statistical Applications in
Genetics and Molecular Biology 3, 2004, article 3). A board that has seen one GPU alone says so and
widens nothing: its ranks hold for that GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.board.entry import Entry
from harness.judge.estimates import Estimate, mean, student, variance_between
from harness.protocol.report import Badge


class Spread(NamedTuple):
    """Scores of one kernel on the GPUs of a model have this standard deviation, as a share."""

    deviation: float
    degrees: int
    """Of freedom: how well that is known."""
    gpus: int = 0
    """On which it was measured; none where nothing was."""
    kernels: int = 0

    def margin(self, gpus: int) -> float:
        """How far, as a share, the mean over so many GPUs may be from that over all of the model,
        with 95 % confidence."""
        return student(self.degrees) * self.deviation / math.sqrt(gpus)


Spreads = Mapping[str | None, Spread]
"""By the cores that a kernel uses; empty where only one GPU was seen."""

PRIOR = Spread(deviation=0.0078, degrees=2)
"""Before a board has measured anything: two H200 of one host scored one kernel on tensor cores at
4.840 and 4.786, two H100 another time at 4.66 and 4.71. Each pair is 1.1 % apart, which is a
deviation of 0.78 %, and has one degree of freedom. (With a kernel on CUDA cores the two H200 did
not differ; but elsewhere GPUs of one model did by 8 %: Sinha et al., arXiv 2208.11035.)"""


def by_gpu(runs: Iterable[Entry]) -> dict[str, Estimate]:
    """What the runs of one program say, GPU by GPU."""
    found: dict[str, list[Estimate]] = {}
    for run in runs:
        found.setdefault(gpu_of(run), []).append(estimate(run))
    return {gpu: mean(several) for gpu, several in found.items()}


def gpu_of(run: Entry) -> str:
    """Which GPU; one that the report does not name may be any, and so is nobody else's."""
    return run.uuid or f"unknown, of {run.id}"


def estimate(run: Entry) -> Estimate:
    assert run.score is not None and run.low is not None and run.high is not None
    return Estimate.of_ratio(run.score, run.low, run.high)


def difference(one: Entry, other: Entry) -> Estimate:
    """How much faster the other run is, as a share, on any GPU of the model where the two are of
    two GPUs."""
    margin = 0.0 if gpu_of(one) == gpu_of(other) else PRIOR.margin(1)
    return estimate(other).widened(margin).minus(estimate(one).widened(margin))


def measured(runs: Iterable[Entry]) -> Spread:
    """The spread that these kernels show, weighed with what was known before. runs: of one GPU
    model and of one kind of cores."""
    programs: dict[str, list[Entry]] = {}
    for run in runs:
        programs.setdefault(run.code, []).append(run)
    groups = [group for code in programs.values() if len(group := by_gpu(code)) > 1]
    if not groups:
        return PRIOR
    variance = variance_between([list(group.values()) for group in groups])
    degrees = _independent_differences(groups)
    together = PRIOR.degrees + degrees
    weighed = (PRIOR.degrees * PRIOR.deviation**2 + degrees * variance) / together
    gpus = len({gpu for group in groups for gpu in group})
    return Spread(math.sqrt(weighed), together, gpus, len(groups))


def said(gpus: Sequence[str], spreads: Spreads) -> str:
    """What the intervals of a board hold of the difference between GPUs, in a sentence."""
    if len(gpus) == 1:
        return (
            f"Graded on one GPU of this model ({gpus[0][:12]}): the ranks hold for it, and the "
            "intervals do not have in them how much others differ."
        )
    kinds = [
        f"{100 * spread.deviation:.2g} % for kernels on {_CORES.get(cores, 'unknown cores')} "
        + (
            f"(from {spread.kernels} of them on {spread.gpus} GPUs)"
            if spread.kernels
            else "(not measured here: no kernel was graded on two GPUs)"
        )
        for cores, spread in spreads.items()
    ]
    return (
        f"Graded on {len(gpus)} GPUs of this model. The intervals have in them how much these "
        f"differ, as a standard deviation: {', '.join(kinds)}."
    )


_CORES: dict[str | None, str] = {
    Badge.CUDA_CORES: "CUDA cores",
    Badge.TENSOR_CORES: "tensor cores",
}


def _independent_differences(groups: Sequence[Iterable[str]]) -> int:
    """Between GPUs, however many kernels show each: a GPU that is slow is so for all of them."""
    sets: list[set[str]] = []
    for group in groups:
        joined = set(group)
        apart = [each for each in sets if not each & joined]
        sets = [*apart, joined.union(*(each for each in sets if each & joined))]
    return sum(len(each) - 1 for each in sets)
