"""Timed rounds until the score is steady, every launch verified."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness.devices.device import Fault, Prepare, Prepared, RoundTime, ScoringDevice, TimeRound
from harness.report import (
    JudgeError,
    Outcome,
    Round,
    Rule,
    RuleViolation,
    Stage,
    Steadiness,
    TimeLimit,
)
from harness.stages.progress import Progress
from harness.stages.score import THROTTLES, is_steady, ratios
from harness.stages.verify import fault_outcome, wrong_answer
from problem.cases import RANKED, Shape
from problem.reference import compare

WARM_UP_SECONDS = 5.0
"""The clock of a GPU that is not steady by then will not become so."""

CHECK_LIMIT = 1.0
"""The error of a timed launch, over what is allowed."""

SURPRISES = 4
"""Before every fourth round, at random, the kernel runs on inputs of other magnitudes, unscored: no
kernel may take for granted at the ranked size what timed inputs are like."""

FEWEST_CLOCK_READINGS = 3
MOST_CLOCK_DIFFERENCE_MS = 0.5
MOST_CLOCK_DIFFERENCE = 0.05
"""The GPU's events must agree with the host's clock in at least one surprise of three or more: they
lie in the GPU's memory, where a kernel that knew the place could write."""

MOST_SECONDS = 300.0
"""The fewest rounds must be over by then, however slow the kernel."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How long to measure.

    rounds: the fewest; a slow warm-up or a lucky start cannot end the measurement early.
    seconds: no new round after these, steady or not.
    """

    rounds: int
    seconds: float


FULL = Extent(rounds=30, seconds=25.0)
QUICK = Extent(rounds=12, seconds=3.0)
OTHER_SIZE = Extent(rounds=12, seconds=5.0)


@dataclass(frozen=True, slots=True)
class Timed:
    """All rounds, and one launch, chosen after the fact, against the full CPU product."""

    prepared: Prepared
    rounds: tuple[Round, ...]
    stopped_by: Steadiness
    audit_error: float | None
    """None where no launch was to be audited."""


def timed_rounds(
    device: ScoringDevice,
    extent: Extent,
    *,
    baseline: bool,
    seed: int,
    seconds: float,
    progress: Progress,
    shape: Shape = RANKED.shape,
    audit: bool = True,
) -> Timed | Outcome:
    """Time the loaded kernel beside the baseline (or the baseline beside itself).

    seconds: time limit of one launch. audit: hold one of the ranked size's launches to the full
    CPU product, besides Freivalds' check of every one.
    """
    progress.step("warm-up")
    prepared = device.prepare(Prepare(shape=shape, baseline=baseline, seconds=WARM_UP_SECONDS))
    if isinstance(prepared, Fault):
        return fault_outcome(prepared, shape, seconds, Stage.MEASURE)
    rounds: list[Round] = []
    surprises: list[RoundTime] = []
    audit_after = extent.rounds // 2 + secrets.randbelow(extent.rounds // 2)
    audit_error: float | None = None
    started = time.monotonic()
    while True:
        progress.step(f"round {len(rounds) + 1}{_so_far(rounds)}")
        if time.monotonic() - started > MOST_SECONDS:
            return _too_slow(len(rounds))
        if secrets.randbelow(SURPRISES) == 0:
            surprise = _round_time(device, shape, len(rounds), seconds, surprise=True)
            if not isinstance(surprise, RoundTime):
                return surprise
            surprises.append(surprise)
        # ABBA: a drift of the clock falls on both alike.
        kernel_first = len(rounds) % 4 in (1, 2)
        answer = _round_time(device, shape, len(rounds), seconds, kernel_first=kernel_first)
        if not isinstance(answer, RoundTime):
            return answer
        rounds.append(_round(answer, kernel_first))
        if audit and audit_error is None:
            if len(rounds) >= audit_after and not kernel_first:
                progress.step("full product of the last round on the CPU")
                audited = _audit(device, seed, seconds)
                if not isinstance(audited, float):
                    return audited
                audit_error = audited
            continue
        if len(rounds) < extent.rounds:
            continue
        steady = is_steady(rounds)
        if steady or time.monotonic() - started > extent.seconds:
            stopped = Steadiness.STEADY if steady else Steadiness.TIME
            false_clock = _clocks_agree(surprises)
            if false_clock is not None:
                return false_clock
            return Timed(prepared, tuple(rounds), stopped, audit_error)


def _round_time(
    device: ScoringDevice,
    shape: Shape,
    number: int,
    seconds: float,
    *,
    kernel_first: bool = False,
    surprise: bool = False,
) -> RoundTime | Outcome:
    """One round, checked."""
    request = TimeRound(kernel_first=kernel_first, surprise=surprise, seconds=seconds)
    answer = device.time_round(request)
    if isinstance(answer, Fault):
        return fault_outcome(answer, shape, seconds, Stage.MEASURE)
    return _checked(answer, number, surprise) or answer


def _too_slow(rounds: int) -> TimeLimit:
    return TimeLimit(
        stage=Stage.MEASURE,
        message=f"only {rounds} rounds did end within {MOST_SECONDS:g} s",
        seconds=MOST_SECONDS,
    )


def _clocks_agree(surprises: Sequence[RoundTime]) -> Outcome | None:
    if len(surprises) < FEWEST_CLOCK_READINGS:
        return None
    closest = min(surprises, key=lambda timed: timed.kernel_host_ms - timed.kernel_ms)
    allowed = MOST_CLOCK_DIFFERENCE_MS + MOST_CLOCK_DIFFERENCE * closest.kernel_ms
    if closest.kernel_host_ms - closest.kernel_ms <= allowed:
        return None
    return RuleViolation(
        stage=Stage.MEASURE,
        rule=Rule.IMPOSSIBLE_SCORE,
        message=(
            f"the GPU's events say {closest.kernel_ms:.3g} ms and the host's clock "
            f"{closest.kernel_host_ms:.3g} ms for the same launch; somebody must look at it"
        ),
    )


def _so_far(rounds: Sequence[Round]) -> str:
    values = ratios(rounds)
    return f", {statistics.median(values):.3f} × cuBLAS so far" if values else ""


def _round(timed: RoundTime, kernel_first: bool) -> Round:
    return Round(
        kernel_ms=timed.kernel_ms,
        baseline_ms=timed.baseline_ms,
        kernel_first=kernel_first,
        clock_mhz=timed.clock_mhz,
        power_w=timed.power_w,
        throttled=timed.throttled,
        dropped=any(reason in THROTTLES for reason in timed.throttled),
        check=timed.check,
    )


def _checked(timed: RoundTime, number: int, surprise: bool = False) -> Outcome | None:
    if timed.changed_inputs:
        names = " and ".join(timed.changed_inputs)
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.INPUTS_CHANGED,
            message=f"the kernel changed {names} in round {number + 1}; "
            "inputs are not to be written to",
        )
    if timed.baseline_check > CHECK_LIMIT:
        return JudgeError(
            stage=Stage.MEASURE,
            message=f"cuBLAS itself was wrong in round {number + 1}: "
            f"its error is {timed.baseline_check:.3g} times the limit",
        )
    if timed.check > CHECK_LIMIT:
        when = (
            f"before round {number + 1}, on inputs whose groups are scaled by 2^±10"
            if surprise
            else f"in round {number + 1}, on inputs drawn for it alone"
        )
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.STALE_RESULT,
            message=f"right when verified, wrong when timed: {when}, "
            f"the error is {timed.check:.3g} times the limit",
        )
    return None


def _audit(device: ScoringDevice, seed: int, seconds: float) -> float | Outcome:
    """The round just timed against the full CPU product."""
    fetched = device.fetch_round()
    if isinstance(fetched, Fault):
        return fault_outcome(fetched, RANKED.shape, seconds, Stage.MEASURE)
    A, B, C = fetched
    comparison = compare(A, B, C, exact=False)
    if not comparison.passed:
        return wrong_answer(Stage.MEASURE, RANKED, seed, A, B, C, comparison)
    return comparison.worst
