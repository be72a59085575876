"""Audit: what timed launches left is held to the product of the CPU, once others have the GPU."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from harness.judge.progress import Progress
from harness.judge.stages.verify import wrong_answer
from harness.protocol import background
from harness.protocol.report import Outcome, Rule, RuleViolation, Stage
from harness.protocol.timing import Fetched
from problem.cases import RANKED, Matrix
from problem.inputs import Draw
from problem.reference import MAX_ERROR, Comparison, compare, compare_repeated


@dataclass(frozen=True, slots=True)
class Kept:
    """One of the first two launches, as it compares; and one of the timed launches, if one was to
    be kept."""

    first: Future[Comparison]
    timed: Fetched | None


def begin(rows: Matrix, columns: Matrix, C: Matrix) -> Future[Comparison]:
    """Compare the C of a first launch, whose A and B repeat these few rows and columns, while the
    GPU gets ready for rounds."""
    return background.begin(compare_repeated, rows, columns, C)


def audit(kept: Kept, seed: int, progress: Progress) -> float | Outcome | None:
    """The error of the timed launch; an outcome where a launch was wrong."""
    progress.step("product of the first launch on the CPU")
    comparison = kept.first.result()
    if not comparison.passed:
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.STALE_RESULT,
            message="right when verified, wrong in the first launches of a process: the error is "
            f"{comparison.worst / MAX_ERROR:.3g} times the limit",
        )
    if kept.timed is None:
        return None
    progress.step("full product of a timed launch on the CPU")
    return _timed(kept.timed, seed)


def _timed(launch: Fetched, seed: int) -> float | Outcome:
    shape = RANKED.shape
    A = Draw.plain(launch.seed_of_A).matrix(shape.M, shape.N)
    B = Draw.plain(launch.seed_of_B).matrix(shape.N, shape.K)
    comparison = compare(A, B, launch.C)
    if not comparison.passed:
        return wrong_answer(Stage.MEASURE, RANKED, seed, A, B, launch.C, comparison)
    return comparison.worst
