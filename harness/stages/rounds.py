"""Timed rounds until the score is steady, every launch verified."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.progress import Progress
from harness.protocol.request import Fault
from harness.protocol.timing import (
    Attach,
    Checked,
    CheckLaunch,
    Detach,
    DrawInputs,
    FetchLaunch,
    LaunchTime,
    LayOut,
    ScoringDevice,
    TimeLaunch,
    TimingRequest,
    TimingWorkers,
)
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
from harness.stages.outcomes import judge_error, launch_outcome
from harness.stages.score import THROTTLES, is_steady, ratios
from harness.stages.verify import wrong_answer
from problem.cases import RANKED, Shape
from problem.reference import compare

T = TypeVar("T")

MIN_WARM_UP_SECONDS = 0.5
MAX_WARM_UP_SECONDS = 5.0
"""A GPU raises its clock within some tens of milliseconds of work; one whose clock is not steady
after seconds will not become so."""

STEADY_READINGS = 5
STEADY_MHZ = 15
"""The clock is steady when so many readings in a row are within one step of it."""

CHECK_LIMIT = 1.0
"""The error of a timed launch, over what is allowed."""

RESCALED = 4
"""Before every fourth round, at random, the kernel runs on inputs of other magnitudes, unscored: no
kernel may take for granted at the ranked size what timed inputs are like."""

MAX_CLOCK_DIFFERENCE_MS = 0.1
MAX_CLOCK_DIFFERENCE = 0.005
"""How much longer the host's clock may take for the kernel than its events say, than it does for
the baseline: events lie in the GPU's memory, where a kernel that knows the place can write. Beside
each other on an H100, the two clocks' difference is the same to within 0.03 ms."""

MAX_SECONDS = 300.0
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
class WarmUp:
    launches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Timed:
    """All rounds, and one launch, chosen after the fact, against the full CPU product."""

    warm_up: WarmUp
    rounds: tuple[Round, ...]
    stopped_by: Steadiness
    audit_error: float | None
    """None where no launch was to be audited."""


def timed_rounds(
    workers: TimingWorkers,
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
    CPU product, besides the checks of every one.
    """
    measuring = _Measuring(workers, shape, seconds)
    result: Timed | Outcome
    try:
        progress.step("warm-up")
        measuring.begin(baseline)
        warm_up = measuring.warm_up()
        result = _rounds(measuring, extent, warm_up, seed, progress, audit)
    except MeasurementAborted as aborted:
        result = aborted.outcome
    measuring.end()  # not when interrupted: a worker that is at a launch would let us wait
    return result


def _rounds(
    measuring: _Measuring,
    extent: Extent,
    warm_up: WarmUp,
    seed: int,
    progress: Progress,
    audit: bool,
) -> Timed:
    rounds: list[_Pair] = []
    audit_after = extent.rounds // 2 + secrets.randbelow(extent.rounds // 2)
    audit_error: float | None = None
    started = time.monotonic()
    while True:
        progress.step(f"round {len(rounds) + 1}{_so_far(rounds)}")
        if time.monotonic() - started > MAX_SECONDS:
            raise MeasurementAborted(_too_slow(len(rounds)))
        if secrets.randbelow(RESCALED) == 0:
            measuring.kernel(len(rounds), rescaled=True)
        # ABBA: a drift of the clock falls on both alike.
        kernel_first = len(rounds) % 4 in (1, 2)
        rounds.append(measuring.pair(len(rounds), kernel_first))
        if audit and audit_error is None:
            if len(rounds) >= audit_after and not kernel_first:
                progress.step("full product of the last round on the CPU")
                audit_error = _audit(measuring, seed)
            continue
        if len(rounds) < extent.rounds:
            continue
        shown = tuple(pair.round for pair in rounds)
        steady = is_steady(shown)
        if steady or time.monotonic() - started > extent.seconds:
            stopped = Steadiness.STEADY if steady else Steadiness.TIME
            false_clock = _clocks_disagree(rounds)
            if false_clock is not None:
                raise MeasurementAborted(false_clock)
            return Timed(warm_up, shown, stopped, audit_error)


class MeasurementAborted(Exception):
    """Ends a measurement early, with this outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class _Pair:
    """A launch of the kernel and one of the baseline."""

    kernel: LaunchTime
    baseline: LaunchTime
    round: Round


class _Measuring:
    """Timing workers on one shape. Raises MeasurementAborted where something is wrong."""

    def __init__(self, workers: TimingWorkers, shape: Shape, seconds: float) -> None:
        self.workers = workers
        self.shape = shape
        self.seconds = seconds
        self._attached: list[ScoringDevice] = []

    def begin(self, baseline: bool) -> None:
        """baseline: in the kernel's place too."""
        matrices = _judges(self.workers.checker.ask(LayOut(shape=self.shape)))
        attach = Attach(matrices=matrices, baseline=True, seconds=self.seconds)
        _judges(self._ask(self.workers.baseline, attach))
        self._attached.append(self.workers.baseline)
        attach = attach.model_copy(update={"baseline": baseline})
        self._kernels(self._ask(self.workers.kernel, attach))
        self._attached.append(self.workers.kernel)

    def end(self) -> None:
        """Let go of the matrices, before the checker frees them."""
        for device in self._attached:
            device.ask(Detach())

    def warm_up(self) -> WarmUp:
        """Launch both in turn until the clock is steady, or for as long as that may take."""
        started = time.monotonic()
        readings: list[int] = []
        launches = 0
        while True:
            self._baseline()
            readings = [*readings[1 - STEADY_READINGS :], self._kernel().clock_mhz]
            launches += 2
            elapsed = time.monotonic() - started
            steady = (
                len(readings) == STEADY_READINGS and max(readings) - min(readings) <= STEADY_MHZ
            )
            if (steady and elapsed >= MIN_WARM_UP_SECONDS) or elapsed >= MAX_WARM_UP_SECONDS:
                return WarmUp(launches, elapsed)

    def pair(self, number: int, kernel_first: bool) -> _Pair:
        """One round: a launch of each, on inputs of its own."""
        if kernel_first:
            kernel, check = self.kernel(number)
            baseline = self.baseline(number)
        else:
            baseline = self.baseline(number)
            kernel, check = self.kernel(number)
        throttled = tuple(sorted({*kernel.throttled, *baseline.throttled}))
        timed = Round(
            kernel_ms=kernel.ms,
            baseline_ms=baseline.ms,
            kernel_first=kernel_first,
            clock_mhz=min(kernel.clock_mhz, baseline.clock_mhz),
            power_w=kernel.power_w,
            throttled=throttled,
            dropped=any(reason in THROTTLES for reason in throttled),
            check=check.error,
        )
        return _Pair(kernel, baseline, timed)

    def kernel(self, number: int, *, rescaled: bool = False) -> tuple[LaunchTime, Checked]:
        """A launch of the kernel, checked."""
        timed = self._kernel(rescaled)
        check = self._check()
        wrong = _wrong(check, number, rescaled)
        if wrong is not None:
            raise MeasurementAborted(wrong)
        return timed, check

    def baseline(self, number: int) -> LaunchTime:
        """A launch of the baseline, checked."""
        timed = self._baseline()
        error = self._check().error
        if error > CHECK_LIMIT:
            raise MeasurementAborted(
                JudgeError(
                    stage=Stage.MEASURE,
                    message=f"cuBLAS itself was wrong in round {number + 1}: "
                    f"its error is {error:.3g} times the limit",
                )
            )
        return timed

    def _kernel(self, rescaled: bool = False) -> LaunchTime:
        _judges(self.workers.checker.ask(DrawInputs(rescaled=rescaled)))
        return self._kernels(self._ask(self.workers.kernel, TimeLaunch(seconds=self.seconds)))

    def _baseline(self) -> LaunchTime:
        _judges(self.workers.checker.ask(DrawInputs()))
        return _judges(self._ask(self.workers.baseline, TimeLaunch(seconds=self.seconds)))

    def _check(self) -> Checked:
        return _judges(self.workers.checker.ask(CheckLaunch()))

    def _ask(self, device: ScoringDevice, request: TimingRequest[T]) -> T | Fault:
        """A process that answers with a Fault is gone, and what it had opened with it."""
        answer = device.ask(request)
        if isinstance(answer, Fault) and device in self._attached:
            self._attached.remove(device)
        return answer

    def _kernels(self, answer: T | Fault) -> T:
        """What the kernel answers for."""
        if isinstance(answer, Fault):
            raise MeasurementAborted(
                launch_outcome(answer, self.shape, self.seconds, Stage.MEASURE)
            )
        return answer


def _judges(answer: T | Fault) -> T:
    """What the judge answers for."""
    if isinstance(answer, Fault):
        raise MeasurementAborted(judge_error(answer, Stage.MEASURE))
    return answer


def _too_slow(rounds: int) -> TimeLimit:
    return TimeLimit(
        stage=Stage.MEASURE,
        message=f"only {rounds} rounds did end within {MAX_SECONDS:g} s",
        seconds=MAX_SECONDS,
    )


def _clocks_disagree(rounds: Sequence[_Pair]) -> Outcome | None:
    """The verdict for events that the host's clock contradicts. Medians, for the host may be late
    now and then, and a score is a median too; and where it is late for the baseline (another
    program is on the GPU, say), it may be as late for the kernel."""
    ms = statistics.median(pair.kernel.ms for pair in rounds)
    late = statistics.median(pair.kernel.host_ms - pair.kernel.ms for pair in rounds)
    usual = [pair.baseline.host_ms - pair.baseline.ms for pair in rounds]
    middle, ninth = statistics.median(usual), statistics.quantiles(usual, n=10)[-1]
    allowed = MAX_CLOCK_DIFFERENCE_MS + MAX_CLOCK_DIFFERENCE * ms + 2 * (ninth - middle)
    if late - middle <= allowed:
        return None
    return RuleViolation(
        stage=Stage.MEASURE,
        rule=Rule.IMPOSSIBLE_SCORE,
        message=(
            f"the GPU's events say {ms:.3g} ms and the host's clock {ms + late - middle:.3g} ms "
            "for the same launches; flagged for manual review"
        ),
    )


def _so_far(rounds: Sequence[_Pair]) -> str:
    values = ratios([pair.round for pair in rounds])
    return f", {statistics.median(values):.3f} × cuBLAS so far" if values else ""


def _wrong(check: Checked, number: int, rescaled: bool) -> RuleViolation | None:
    if check.changed_inputs:
        names = " and ".join(check.changed_inputs)
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.INPUTS_CHANGED,
            message=f"the kernel changed {names} in round {number + 1}; "
            "inputs are not to be written to",
        )
    if check.error > CHECK_LIMIT:
        when = (
            f"before round {number + 1}, on inputs whose groups are scaled by 2^±10"
            if rescaled
            else f"in round {number + 1}, on inputs drawn for it alone"
        )
        return RuleViolation(
            stage=Stage.MEASURE,
            rule=Rule.STALE_RESULT,
            message=f"right when verified, wrong when timed: {when}, "
            f"the error is {check.error:.3g} times the limit",
        )
    return None


def _audit(measuring: _Measuring, seed: int) -> float:
    """The launch just timed against the full CPU product."""
    launch = _judges(measuring.workers.checker.ask(FetchLaunch()))
    A, B, C = launch.A, launch.B, launch.C
    comparison = compare(A, B, C, exact=False)
    if not comparison.passed:
        raise MeasurementAborted(wrong_answer(Stage.MEASURE, RANKED, seed, A, B, C, comparison))
    return comparison.worst
