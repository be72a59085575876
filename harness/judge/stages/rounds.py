"""Timed rounds until the score is steady, every launch verified."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from harness.judge.grading import Failure
from harness.judge.progress import Progress
from harness.judge.stages.accuracy import graded
from harness.judge.stages.outcomes import Ended, T, finished, judge_error, loaded, touched
from harness.judge.stages.score import (
    MIN_RATIOS,
    THROTTLES,
    is_steady,
    judge_clocks,
    ratios,
    too_many_dropped,
)
from harness.protocol.compiler import Kernel
from harness.protocol.device import Load
from harness.protocol.report import (
    InputsAccuracy,
    InputsTime,
    JudgeError,
    Round,
    Rule,
    RuleViolation,
    Stage,
    Steadiness,
    Sustained,
    TimeLimit,
)
from harness.protocol.request import Fault, Process, Request
from harness.protocol.timing import (
    Checked,
    CheckLaunch,
    CloseBuffers,
    DrawInputs,
    Fetched,
    FetchLaunch,
    LaunchTime,
    MeasureErrors,
    OpenBuffers,
    ShareBuffers,
    SharedBuffers,
    Sustain,
    SustainedLaunches,
    TimeLaunch,
    TimingWorkers,
)
from problem.cases import UNIFORM, Case, Shape
from problem.problem import Problem

MIN_WARM_UP_SECONDS = 0.5
MAX_WARM_UP_SECONDS = 5.0
"""A GPU raises its clock within some tens of milliseconds of work; one whose clock is not steady
after seconds will not become so."""

STEADY_READINGS = 5
STEADY_MHZ = 15
"""The clock is steady when so many readings in a row are within one step of it."""

CHECK_LIMIT = 1.0
"""The largest error of a timed launch, divided by the allowed error."""

MAX_SECONDS = 40.0
"""The limit for the smallest number of rounds, warm-up included. With the rest of a grading, that
makes a minute of the GPU's time."""


NEAR_SIZES, NEAR_KINDS = 6, 4
"""The number of sizes near the ranked one that are checked, and of kinds of inputs at each. Every
kind is used at one of them."""

LAUNCHES_PER_CHECK = 2
"""The average number of launches for each unannounced check. Each launch may be one, independently
of the launches before it, so a kernel cannot know which launches are scored."""

MAX_UNANNOUNCED_SECONDS = 60.0
"""The time limit of all unannounced checks together. They shorten no rounds."""


SUSTAIN_SECONDS = 1.5
"""How long kernel and baseline are each launched back to back. Power is regulated within tenths of
a second, and the GPU counts its energy in steps of some hundredths."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The limits of a measurement.

    rounds: the fewest rounds, if they fit into the seconds; so a slow warm-up or a lucky start
    cannot end the measurement early.
    seconds: no round begins after these, even if the times are not steady.
    checks: the fewest unannounced checks on each unscored kind of inputs, regardless of their time.
    thorough: keep one launch, to compare it with the full product of the CPU; and measure accuracy
    and launches back to back.
    """

    rounds: int
    seconds: float
    checks: int = 1
    thorough: bool = False

    def fewest(self, done: int, elapsed: float) -> int:
        """Return the fewest rounds, reduced for a slow kernel by its rounds and seconds so far."""
        fit = int(self.seconds / elapsed * done) if done and elapsed > 0 else self.rounds
        return max(MIN_RATIOS, min(self.rounds, fit))


FULL = Extent(rounds=36, seconds=25.0, thorough=True)
QUICK = Extent(rounds=12, seconds=3.0)
OTHER_SIZE = Extent(rounds=12, seconds=5.0, checks=0)


class RandomOrder:
    """Kinds of inputs in a secret random order, all equally often."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = kinds
        self.fewest = 0
        """How often every kind was drawn."""
        self._left: list[str] = []

    def draw(self) -> str:
        """Return the next kind."""
        if not self._left:
            self._left = [*self.kinds]
            secrets.SystemRandom().shuffle(self._left)
        kind = self._left.pop()
        self.fewest += not self._left
        return kind


@dataclass(frozen=True, slots=True)
class Timed:
    """All rounds, and what a thorough measurement adds."""

    rounds: tuple[Round, ...]
    stopped_by: Steadiness
    by_inputs: tuple[InputsTime, ...] = ()
    """How long the kernel takes on each kind of inputs, the slowest first."""
    audited: Fetched | None = None
    """The launch that is compared with the full product of the CPU."""
    accuracy: tuple[InputsAccuracy, ...] = ()
    sustained: Sustained | None = None
    """Launches back to back."""


def timed_rounds(
    measuring: Measuring,
    extent: Extent,
    progress: Progress,
    *,
    baseline: bool = False,
    quiet: Callable[[], object] = lambda: None,
) -> Timed:
    """Time the loaded kernel and the baseline in turn. Raises Ended.

    baseline: time the baseline against itself. quiet: waits until this host does nothing else.
    """
    with measuring:
        progress.step("warm-up")
        measuring.open_buffers(measuring.share_buffers(), baseline)
        warmed_up = measuring.warm_up()
        quiet()
        timed = _rounds(measuring, extent, warmed_up, progress)
        if not extent.thorough:
            return timed
        progress.step("accuracy on structured inputs")
        accuracy = tuple(map(measuring.accuracy, measuring.problem.accuracy_inputs))
        progress.step("launches back to back")
        sustained = measuring.sustained(SUSTAIN_SECONDS)
        return replace(timed, accuracy=accuracy, sustained=sustained)


def _rounds(measuring: Measuring, extent: Extent, warmed_up: float, progress: Progress) -> Timed:
    """Return rounds until the score is steady. warmed_up: the seconds that the warm-up took."""
    rounds: list[Round] = []
    audit_after = extent.rounds // 2 + secrets.randbelow(extent.rounds // 2)
    audited: Fetched | None = None
    started = time.monotonic()

    def elapsed() -> float:
        return time.monotonic() - started - measuring.unannounced_seconds

    while True:
        progress.step(f"round {len(rounds) + 1}{_so_far(rounds, measuring.problem)}")
        measuring.unannounced_checks(len(rounds))
        fewest = extent.fewest(len(rounds), elapsed())
        if warmed_up + elapsed() > MAX_SECONDS and len(rounds) < fewest:
            message = (
                f"too slow to measure: only {len(rounds)} rounds ended within {MAX_SECONDS:g} s"
            )
            raise _too_slow(message, MAX_SECONDS)
        if extent.thorough and audited is None and len(rounds) >= min(audit_after, fewest):
            # The kernel's launch is the last of the round, so that C holds the kernel's result.
            rounds.append(measuring.round(len(rounds), UNIFORM, kernel_first=False))
            audited = measuring.fetch()
        else:
            # In the order ABBA a drift of the clock affects both alike.
            kernel_first = len(rounds) % 4 in (1, 2)
            rounds.append(measuring.round(len(rounds), measuring.scored.draw(), kernel_first))
        if len(rounds) < fewest or (extent.thorough and audited is None):
            continue
        measuring.unannounced_checks(len(rounds), extent.checks)
        judged = judge_clocks(rounds)
        if not isinstance(judged, tuple):
            raise Ended(judged)
        # While other contexts are created on the GPU, the host is late for half a second.
        steady = is_steady(judged) and not too_many_dropped(judged)
        if steady or elapsed() > extent.seconds:
            stopped = Steadiness.STEADY if steady else Steadiness.TIME
            return Timed(judged, stopped, measuring.by_inputs(judged), audited)


def check_near_sizes(
    workers: TimingWorkers, problem: Problem, seconds: float, progress: Progress
) -> Failure | None:
    """Check sizes near the ranked one, which a kernel may compute by a fast path that no smaller
    case reaches. Inputs are drawn and products compared on the GPU. seconds: time limit of one
    launch."""
    for shape, kinds in problem.near_cases(NEAR_SIZES, NEAR_KINDS):
        progress.step(f"check at {shape}")
        inputs = UNIFORM
        try:
            with Measuring(workers, problem, shape, seconds) as measuring:
                measuring.open_buffers(measuring.share_buffers())
                for inputs in kinds:
                    measuring.launch(inputs, f"at {shape}")
        except Ended as ended:
            return Failure(Case(shape, inputs), ended.outcome)
    return None


CheckedLaunch = tuple[LaunchTime, Checked]


class Measuring:
    """Timing workers on one shape. Raises Ended where something is wrong.

    As a context, it closes the buffers at its end, before the checker frees them. It does not
    after an interruption, which must not wait for a launch.
    """

    def __init__(
        self, workers: TimingWorkers, problem: Problem, shape: Shape, seconds: float
    ) -> None:
        """seconds: time limit of one launch."""
        self.workers = workers
        self.problem = problem
        self.shape = shape
        self.seconds = seconds
        self.scored = RandomOrder(problem.scored_inputs)
        self.unscored = RandomOrder(problem.unscored_inputs)
        self.unannounced_seconds = 0.0
        """How long the unannounced checks took."""
        self._unscored_ms: dict[str, list[float]] = {}
        self._opened: list[Process] = []

    def share_buffers(self) -> SharedBuffers:
        """Return shared buffers, after the baseline's first launch on them."""
        arguments = self.problem.arguments(self.shape)
        request = ShareBuffers(on_gpu=self.problem.on_gpu, arguments=arguments)
        buffers = _trusted(self.workers.checker.ask(request))
        opening = OpenBuffers(buffers=buffers, baseline=self.problem.on_gpu, seconds=self.seconds)
        _trusted(self._ask(self.workers.baseline, opening))
        self._opened.append(self.workers.baseline)
        self._check_baseline("its first launch")
        return buffers

    def open_buffers(self, buffers: SharedBuffers, baseline: bool = False) -> None:
        """Make the kernel's first launch on the buffers. baseline: launch the baseline instead."""
        _trusted(self.workers.checker.ask(DrawInputs()))
        on_gpu = self.problem.on_gpu if baseline else None
        opening = OpenBuffers(buffers=buffers, baseline=on_gpu, seconds=self.seconds)
        self._of_kernel(self._ask(self.workers.kernel, opening))
        self._opened.append(self.workers.kernel)
        self._check_kernel("in the first launch", UNIFORM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind in (None, Ended):
            for device in self._opened:
                device.ask(CloseBuffers())

    def warm_up(self) -> float:
        """Launch both in turn until the clock is steady, or until the time for that is over; return
        the seconds that this took. The inputs are of scored kinds, since other kinds may lead to
        another clock."""
        started = time.monotonic()
        readings: list[int] = []
        while True:
            inputs = secrets.choice(self.scored.kinds)
            self.launch(inputs, "warm-up", baseline=True)
            timed, _ = self.launch(inputs, "during warm-up")
            readings = [*readings[1 - STEADY_READINGS :], timed.clock_mhz]
            elapsed = time.monotonic() - started
            steady = (
                len(readings) == STEADY_READINGS and max(readings) - min(readings) <= STEADY_MHZ
            )
            if (steady and elapsed >= MIN_WARM_UP_SECONDS) or elapsed >= MAX_WARM_UP_SECONDS:
                return elapsed

    def round(self, number: int, inputs: str, kernel_first: bool) -> Round:
        """Launch kernel and baseline once, each on new inputs."""
        where = f"in round {number + 1}"
        order = (False, True) if kernel_first else (True, False)
        launches = {each: self.launch(inputs, where, baseline=each) for each in order}
        return self.paired(launches[False], launches[True], inputs, kernel_first)

    @staticmethod
    def paired(
        of_kernel: CheckedLaunch, of_baseline: CheckedLaunch, inputs: str, kernel_first: bool
    ) -> Round:
        """Return the round that two launches make."""
        (kernel, check), (baseline, _) = of_kernel, of_baseline
        throttled = tuple(sorted({*kernel.throttled, *baseline.throttled}))
        return Round(
            kernel_ms=kernel.ms,
            baseline_ms=baseline.ms,
            kernel_host_ms=kernel.host_ms,
            baseline_host_ms=baseline.host_ms,
            kernel_cycles=kernel.cycles,
            baseline_cycles=baseline.cycles,
            inputs=inputs,
            kernel_first=kernel_first,
            clock_mhz=min(kernel.clock_mhz, baseline.clock_mhz),
            power_w=kernel.power_w,
            throttled=throttled,
            dropped=any(reason in THROTTLES for reason in throttled),
            check=check.error,
        )

    def unannounced_checks(self, number: int, fewest: int = 0) -> None:
        """Make launches that are checked and not scored, where a kernel expects the next round.

        They detect a kernel that looks at some elements only to decide how to compute.

        fewest: go on until each kind was checked that often.
        """
        started = time.monotonic()
        while self.unscored.fewest < fewest or not (
            fewest or secrets.randbelow(LAUNCHES_PER_CHECK)
        ):
            inputs = self.unscored.draw()
            timed, _ = self.launch(inputs, f"before round {number + 1}")
            self._unscored_ms.setdefault(inputs, []).append(timed.ms)
            if self.unannounced_seconds + time.monotonic() - started > MAX_UNANNOUNCED_SECONDS:
                raise _too_slow(
                    "too slow on unscored inputs: the unannounced checks took more than "
                    f"{MAX_UNANNOUNCED_SECONDS:g} s, the last of them on inputs of the kind "
                    f'"{inputs}"',
                    MAX_UNANNOUNCED_SECONDS,
                )
        self.unannounced_seconds += time.monotonic() - started

    def by_inputs(self, rounds: Sequence[Round]) -> tuple[InputsTime, ...]:
        """Return the time of the kernel on each kind of inputs, the slowest first."""
        kept = [each for each in rounds if not each.dropped]
        if not kept:
            return ()
        baseline = statistics.median(each.baseline_ms for each in kept)
        scored: dict[str, list[float]] = {}
        for each in kept:
            scored.setdefault(each.inputs, []).append(each.kernel_ms)
        found = [
            InputsTime(
                inputs=inputs,
                scored=times is scored,
                launches=len(ms),
                kernel_ms=statistics.median(ms),
                ratio=baseline / max(statistics.median(ms), 1e-9),
            )
            for times in (scored, self._unscored_ms)
            for inputs, ms in times.items()
        ]
        return tuple(sorted(found, key=lambda each: each.ratio))

    def accuracy(self, inputs: str) -> InputsAccuracy:
        """Return the errors of kernel and baseline on the same inputs."""
        request, blocks = TimeLaunch(seconds=self.seconds), secrets.randbits(64)
        self.launch(inputs, "in a launch for accuracy")
        of_kernel = _trusted(self.workers.checker.ask(MeasureErrors(seed=blocks))).errors
        _trusted(self._ask(self.workers.baseline, request))
        of_baseline = _trusted(self.workers.checker.ask(MeasureErrors(seed=blocks))).errors
        return graded(inputs, self.shape, of_kernel, of_baseline)

    def sustained(self, seconds: float) -> Sustained:
        """Launch the baseline and then the kernel back to back, on uniform inputs."""
        request = Sustain(seconds=self.seconds, duration=seconds)
        self._draw(UNIFORM)
        baseline = _trusted(self._ask(self.workers.baseline, request))
        self._draw(UNIFORM)
        kernel = self._of_kernel(self._ask(self.workers.kernel, request))
        self._check_kernel("in launches back to back", UNIFORM)
        (ms, joules), (baseline_ms, baseline_joules) = _per_launch(kernel), _per_launch(baseline)
        return Sustained(
            seconds=seconds,
            kernel_ms=ms,
            baseline_ms=baseline_ms,
            kernel_joules=joules,
            baseline_joules=baseline_joules,
        )

    def fetch(self) -> Fetched:
        """Return the launch that was timed last."""
        return _trusted(self.workers.checker.ask(FetchLaunch()))

    def launch(self, inputs: str, where: str, baseline: bool = False) -> CheckedLaunch:
        """Launch the kernel or the baseline on inputs of this kind, and check the result."""
        self._draw(inputs)
        request = TimeLaunch(seconds=self.seconds)
        if baseline:
            timed = _trusted(self._ask(self.workers.baseline, request))
            return timed, self._check_baseline(where)
        timed = self._of_kernel(self._ask(self.workers.kernel, request))
        return timed, self._check_kernel(where, inputs)

    def _draw(self, inputs: str) -> None:
        _trusted(self.workers.checker.ask(DrawInputs(inputs=inputs)))

    def _check_kernel(self, where: str, inputs: str) -> Checked:
        check = _trusted(self.workers.checker.ask(CheckLaunch()))
        wrote = touched(check, where, self.shape, Stage.MEASURE)
        if wrote is not None:
            raise Ended(wrote)
        if check.error > CHECK_LIMIT:
            message = (
                f"right when verified, wrong when timed: {where}, on inputs of the kind "
                f'"{inputs}", the error is {check.error:.3g} times the limit'
            )
            raise Ended(RuleViolation(stage=Stage.MEASURE, rule=Rule.STALE_RESULT, message=message))
        return check

    def _check_baseline(self, where: str) -> Checked:
        check = _trusted(self.workers.checker.ask(CheckLaunch()))
        if check.error > CHECK_LIMIT:
            times = f"its error is {check.error:.3g} times the limit"
            message = f"{self.problem.baseline} itself was wrong ({where}): {times}"
            raise Ended(JudgeError(stage=Stage.MEASURE, message=message))
        return check

    def _ask(self, device: Process, request: Request[T]) -> T | Fault:
        """Ask a process. A Fault has ended it, and closed the buffers that it had opened."""
        answer = device.ask(request)
        if isinstance(answer, Fault) and device in self._opened:
            self._opened.remove(device)
        return answer

    def _of_kernel(self, answer: T | Fault) -> T:
        return finished(answer, self.shape, self.seconds, Stage.MEASURE)


def load_kernel(workers: TimingWorkers, kernel: Kernel) -> None:
    """Load the kernel that will be timed. Raises Ended if that is impossible."""
    loaded(workers.kernel.ask(Load(kernel=kernel)))


def _per_launch(launches: SustainedLaunches) -> tuple[float, float | None]:
    """Return the milliseconds and the joules of one of these launches."""
    joules = None if launches.joules is None else launches.joules / launches.launches
    return launches.seconds / launches.launches * 1e3, joules


def _trusted(answer: T | Fault) -> T:
    """Return the answer of the judge's own worker; raise if it is a fault."""
    if isinstance(answer, Fault):
        raise Ended(judge_error(answer, Stage.MEASURE))
    return answer


def _too_slow(message: str, seconds: float) -> Ended:
    return Ended(TimeLimit(stage=Stage.MEASURE, message=message, seconds=seconds))


def _so_far(rounds: Sequence[Round], problem: Problem) -> str:
    values = ratios(rounds)
    return f", {statistics.median(values):.3f} × {problem.baseline} so far" if values else ""
