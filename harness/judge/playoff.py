"""A play-off: grade kernels, then time them and cuBLAS alternately in one run, and compare them.

The launches of a round have the same time, temperature and GPU, which differ between two gradings.
So the difference of two kernels is known far more precisely than either score.
"""

import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from itertools import combinations
from typing import Literal, NamedTuple

from pydantic import Field, NonNegativeInt, PositiveInt

from harness import __version__
from harness.judge.grade import GradingOptions, grade
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.stages.compile import compile_kernel
from harness.judge.stages.measure import MAX_LAUNCH_SECONDS
from harness.judge.stages.outcomes import Ended
from harness.judge.stages.rounds import CheckedLaunch, Extent, Measuring, load_kernel
from harness.judge.stages.score import MIN_RATIOS, judge_clocks, median_interval, score, slower_on
from harness.protocol.compiler import Compile, Kernel
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import (
    DeviceInfo,
    Outcome,
    Report,
    Round,
    Score,
    Sha256,
    Stage,
    Submission,
    Value,
    Verdict,
)
from harness.protocol.timing import TimingWorkers
from problem.cases import Shape
from problem.problem import MATRIX_MULTIPLICATION, Problem

EQUAL = 0.001
"""Two kernels that surely differ by less are equal."""

STEADY = EQUAL / 2
"""A run is long enough when the interval of every difference is at most this wide on each side."""

EXTENT = Extent(rounds=40, seconds=30.0)
"""The length of a run; the seconds are for each kernel."""


class Player(Value):
    """A kernel that takes part."""

    name: str
    author: str | None
    sha256: Sha256
    code: Sha256
    """The hash of its program, which identifies it on a board."""


class Order(StrEnum):
    """The order of two kernels."""

    FASTER = "faster"
    """The first is faster."""
    SLOWER = "slower"
    EQUAL = "equal"
    UNKNOWN = "unknown"


class Difference(Value):
    """The difference of two players."""

    first: NonNegativeInt
    second: NonNegativeInt
    """The index of each among the players."""
    percent: float
    """How much faster the first is."""
    low: float
    high: float
    """The 95 % interval of that."""
    ordered: Order


class PlayOff(Value):
    """The result of a play-off. It holds for this GPU: another of its model may differ."""

    schema_version: Literal[2] = 2
    judge: str
    cases: PositiveInt
    created: datetime
    device: DeviceInfo
    players: tuple[Player, ...] = Field(min_length=2)
    rounds: tuple[tuple[Round, ...], ...]
    """The rounds of each player, in the order of the players; equal indexes are the same round."""
    differences: tuple[Difference, ...]

    @property
    def is_settled(self) -> bool:
        """Return whether the order of all players is known."""
        return all(each.ordered is not Order.UNKNOWN for each in self.differences)

    def places(self) -> list[int]:
        """Return each player's place: one more than the number of players known to be faster."""
        slower = [each.second for each in self.differences if each.ordered is Order.FASTER]
        slower += [each.first for each in self.differences if each.ordered is Order.SLOWER]
        return [1 + slower.count(player) for player in range(len(self.players))]


def play_off(
    submissions: Sequence[Submission],
    session: Session,
    progress: Progress,
    graded: Callable[[Report], None] = lambda _: None,
    problem: Problem = MATRIX_MULTIPLICATION,
) -> PlayOff:
    """Order at least two kernels. graded: gets the report of each kernel before the play-off.

    Raises UsageError if a kernel is not accepted, and JudgeFailure if the play-off fails.
    """
    options = GradingOptions()
    players: list[Player] = []
    for submission in submissions:
        report = grade(submission, session, options, progress, problem)
        graded(report)
        players.append(_qualified(report, players))
    kernels: list[Kernel] = []
    for submission in submissions:
        with _named(submission):
            asked = Compile(
                source=submission.source, arch=session.arch, signature=problem.signature
            )
            kernels.append(compile_kernel(session.compiler, asked).kernel)
    with session.exclusive_lock(progress), session.timing_of_each(len(kernels)) as workers:
        for submission, kernel, each in zip(submissions, kernels, workers, strict=True):
            with _named(submission):
                load_kernel(each, kernel)
        try:
            seconds = min(options.seconds, MAX_LAUNCH_SECONDS)
            rounds = play(workers, problem, seconds=seconds, progress=progress)
        except PlayerEnded as ended:
            with _named(submissions[ended.player]):
                raise
    return PlayOff(
        judge=__version__,
        cases=problem.version,
        created=datetime.now(UTC).replace(microsecond=0),
        device=session.info,
        players=tuple(players),
        rounds=rounds,
        differences=differences(rounds),
    )


def _qualified(report: Report, others: Sequence[Player]) -> Player:
    """Return the player of a report; only accepted kernels may play, and each of them once."""
    submission, kernel = report.submission, report.kernel
    if report.verdict is not Verdict.ACCEPTED or report.score is None or kernel is None:
        why = f"{report.verdict.value}: {report.outcome.message}"
        raise UsageError(f"{submission.name} cannot take part: {why}")
    code = kernel.program_sha256
    assert code is not None, "this judge's reports have it"
    same = [player.name for player in others if player.code == code]
    if same:
        raise UsageError(f"{submission.name} and {same[0]} are one program; leave one out")
    return Player(
        name=submission.name, author=submission.author, sha256=submission.sha256, code=code
    )


@contextmanager
def _named(submission: Submission) -> Iterator[None]:
    """Say in a JudgeFailure which kernel has ended the play-off."""
    try:
        yield
    except Ended as ended:
        name, why = submission.name, ended.outcome.message
        raise JudgeFailure(f"the play-off ended: {name}, which had been accepted: {why}") from None


# ------------------------------------------------------------------------------------ launches


class PlayerEnded(Ended):
    """The launch of a player, given by its index, has ended the run."""

    def __init__(self, player: int, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.player = player


def play(
    workers: Sequence[TimingWorkers],
    problem: Problem = MATRIX_MULTIPLICATION,
    *,
    seconds: float,
    progress: Progress,
    extent: Extent = EXTENT,
) -> tuple[tuple[Round, ...], ...]:
    """Time the kernels that are loaded in these workers, which share baseline and checker.

    Return the rounds of each; raise PlayerEnded. seconds: time limit of one launch.
    """
    progress.begin(Stage.MEASURE, None)
    players = [Measuring(each, problem, problem.ranked.shape, seconds) for each in workers]
    rounds: list[tuple[Round, ...]] = []
    judged: list[tuple[Round, ...]] = []
    current = players[0]  # whose launch ends the run if something goes wrong
    try:
        with ExitStack() as measuring:
            for player in players:
                measuring.enter_context(player)
            progress.step("warm-up")
            buffers = players[0].share_buffers()
            for current in players:
                current.open_buffers(buffers)
            for current in players:
                current.warm_up()
            started = time.monotonic()
            while not _is_enough(rounds, time.monotonic() - started, extent):
                progress.step(f"round {len(rounds) + 1}")
                for current in players:
                    current.unannounced_checks(len(rounds))
                inputs, where = players[0].scored.draw(), f"in round {len(rounds) + 1}"
                order: list[int | None] = [None, *range(len(players))]
                secrets.SystemRandom().shuffle(order)
                launches: dict[int | None, CheckedLaunch] = {}
                for whose in order:
                    current = players[whose or 0]
                    launches[whose] = current.launch(inputs, where, baseline=whose is None)
                rounds.append(
                    tuple(
                        player.paired(
                            launches[number],
                            launches[None],
                            inputs,
                            kernel_first=order.index(number) < order.index(None),
                        )
                        for number, player in enumerate(players)
                    )
                )
            for player, own in zip(players, zip(*rounds, strict=True), strict=True):
                current = player
                clocks = judge_clocks(own)  # drops the rounds in which the clocks differ
                if not isinstance(clocks, tuple):
                    raise Ended(clocks)
                judged.append(clocks)
    except Ended as ended:
        raise PlayerEnded(players.index(current), ended.outcome) from None
    return tuple(judged)


def _is_enough(rounds: Sequence[tuple[Round, ...]], seconds: float, extent: Extent) -> bool:
    players = len(rounds[0]) if rounds else 1
    if len(rounds) < extent.fewest(len(rounds), seconds / players):
        return False
    if seconds > players * extent.seconds:
        return True
    found = [difference(one, other) for one, other in combinations(zip(*rounds, strict=True), 2)]
    return all(
        each is not None and max(each.value - each.low, each.high - each.value) <= STEADY
        for each in found
    )


# --------------------------------------------------------------------------------- differences


class Interval(NamedTuple):
    """The logarithm of how much faster the first of two kernels is, and its 95 % interval."""

    value: float
    low: float
    high: float


def difference(one: Sequence[Round], other: Sequence[Round]) -> Interval | None:
    """Return the difference of two kernels; None if too many rounds were dropped."""
    kind = slower_on(one)
    if kind == slower_on(other):
        # A score is that of the inputs on which its kernel is slower: here both on the same.
        ratios = [
            b.kernel_ms / a.kernel_ms
            for a, b in zip(one, other, strict=True)
            if not (a.dropped or b.dropped) and kind in (None, a.inputs)
        ]
        if len(ratios) < MIN_RATIOS:
            return None
        return Interval(*map(math.log, (statistics.median(ratios), *median_interval(ratios))))
    first, second = (score(rounds, *_NO_PEAK) for rounds in (one, other))
    if not (isinstance(first, Score) and isinstance(second, Score)):
        return None
    # The interval of a difference follows from both intervals by MOVER (Zou and Donner, Statistics
    # in Medicine 27, 2008, 1693-1702).
    value = math.log(first.ratio / second.ratio)
    below = math.log(first.ratio / first.low), math.log(second.high / second.ratio)
    above = math.log(first.high / first.ratio), math.log(second.ratio / second.low)
    return Interval(value, value - math.hypot(*below), value + math.hypot(*above))


_NO_PEAK = DeviceInfo.model_construct(fp32_peak_tflops=None), Shape(1, 1, 1)
"""A ratio of times depends neither on the peak of a GPU nor on the size."""


def differences(rounds: Sequence[Sequence[Round]]) -> tuple[Difference, ...]:
    """Return the difference of every two players."""
    found = []
    for first, second in combinations(range(len(rounds)), 2):
        known = difference(rounds[first], rounds[second]) or Interval(0, -math.inf, math.inf)
        percent, low, high = (100 * math.expm1(each) for each in known)
        found.append(
            Difference(
                first=first,
                second=second,
                percent=percent,
                low=low,
                high=high,
                ordered=_ordered(known),
            )
        )
    return tuple(found)


def _ordered(difference: Interval) -> Order:
    if difference.low > -EQUAL and difference.high < EQUAL:
        return Order.EQUAL
    if difference.low > 0:
        return Order.FASTER
    return Order.SLOWER if difference.high < 0 else Order.UNKNOWN
