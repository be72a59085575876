"""A play-off: time several kernels and cuBLAS alternately on one GPU, and compare the kernels.

The launches of a round share what differs between two gradings: the time, the temperature and the
GPU. So the difference of two kernels is known far better than either score. To learn about other
GPUs of the model, the run is repeated on them.
"""

from __future__ import annotations

import math
import secrets
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import combinations
from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from harness.judge.estimates import NORMAL, Estimate, below_student, over_gpus, student
from harness.judge.progress import Progress
from harness.judge.stages.clocks import judge_clocks
from harness.judge.stages.rounds import (
    CheckedLaunch,
    Extent,
    MeasurementAborted,
    Measuring,
)
from harness.judge.stages.score import MIN_RATIOS, median_interval, score, slower_on
from harness.protocol.report import (
    DeviceInfo,
    Outcome,
    Round,
    Score,
    Sha256,
    Stage,
    Value,
)
from harness.protocol.timing import TimingWorkers
from problem.cases import RANKED, Shape
from problem.problem import MATRIX_MULTIPLICATION, Problem

EQUAL = 0.001
"""Two kernels that surely differ by less are equal."""

STEADY = EQUAL / 2
"""A run is long enough when the interval of every difference is at most so wide on each side."""

EXTENT = Extent(rounds=40, seconds=30.0)
"""The length of one run; the seconds are for each kernel."""


class Player(Value):
    """A kernel that takes part."""

    name: str
    author: str | None
    sha256: Sha256
    code: Sha256
    """The hash of its program, which identifies it on a board."""


class Game(Value):
    """One run on one GPU."""

    device: DeviceInfo
    rounds: tuple[tuple[Round, ...], ...]
    """The rounds of each player, in the order of the players; the n-th of all players are one."""


class Ordered(StrEnum):
    """The order of two kernels."""

    FASTER = "faster"
    """The first is faster."""
    SLOWER = "slower"
    EQUAL = "equal"
    UNKNOWN = "unknown"


class Difference(Value):
    """The difference of two players over all GPUs."""

    first: NonNegativeInt
    second: NonNegativeInt
    """The index of each among the players."""
    percent: float
    """How much faster the first is."""
    low: float
    high: float
    """The 95 % interval of that."""
    confidence: NonNegativeFloat
    """The probability that the first is faster."""
    ordered: Ordered


class PlayOff(Value):
    """The result of one play-off."""

    schema_version: Literal[1] = 1
    judge: str
    cases: PositiveInt
    created: datetime
    players: tuple[Player, ...] = Field(min_length=2)
    games: tuple[Game, ...] = Field(min_length=1)
    differences: tuple[Difference, ...]

    @property
    def gpu(self) -> str:
        """Return the model of the GPUs."""
        return self.games[0].device.name

    @property
    def gpus(self) -> frozenset[str]:
        return frozenset(game.device.uuid or "" for game in self.games)

    def places(self) -> list[int]:
        """Return each player's place: one more than the number of players known to be faster."""
        slower = [each.second for each in self.differences if each.ordered is Ordered.FASTER]
        slower += [each.first for each in self.differences if each.ordered is Ordered.SLOWER]
        return [1 + slower.count(player) for player in range(len(self.players))]

    @model_validator(mode="after")
    def _follows_from_the_rounds(self) -> Self:
        for game in self.games:
            counts = {len(rounds) for rounds in game.rounds}
            if len(game.rounds) != len(self.players) or len(counts) != 1:
                raise ValueError("each player has its launch in every round")
            if any(not (r.kernel_ms > 0 and r.baseline_ms > 0) for rs in game.rounds for r in rs):
                raise ValueError("a round took no time")
        if len({game.device.name for game in self.games}) > 1:
            raise ValueError("its GPUs are of more than one model")
        if len(self.gpus) < len(self.games) or "" in self.gpus:
            raise ValueError("each of its games is on a GPU of its own, which it names")
        for said, found in zip(self.differences, differences(self.games), strict=True):
            if (said.first, said.second, said.ordered) != (
                found.first,
                found.second,
                found.ordered,
            ) or not math.isclose(said.percent, found.percent, abs_tol=1e-6):
                raise ValueError("what it says of its players does not follow from its rounds")
        return self


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that was ended by the launch of a player."""

    player: int
    outcome: Outcome


def play(
    workers: Sequence[TimingWorkers],
    info: DeviceInfo,
    *,
    seconds: float,
    progress: Progress,
    extent: Extent = EXTENT,
    shape: Shape | None = None,
    problem: Problem = MATRIX_MULTIPLICATION,
) -> Game | Ended:
    """Time the kernels that are loaded in these workers, which share baseline and checker.

    seconds: time limit of one launch.
    """
    progress.begin(Stage.MEASURE, None)
    match = _Match(
        [Measuring(each, problem, shape or problem.ranked.shape, seconds) for each in workers]
    )
    result: Game | Ended
    try:
        progress.step("warm-up")
        match.warm_up()
        started = time.monotonic()
        while not _is_enough(match.rounds, time.monotonic() - started, extent):
            progress.step(f"round {len(match.rounds) + 1}")
            match.round()
        result = Game(device=info, rounds=match.judged())
    except _Aborted as aborted:
        result = aborted.ended
    match.end()  # not after an interruption, which must not wait for a launch
    return result


class _Aborted(Exception):
    def __init__(self, ended: Ended) -> None:
        self.ended = ended


@contextmanager
def _for(player: int) -> Iterator[None]:
    """Attribute what goes wrong inside to this player."""
    try:
        yield
    except MeasurementAborted as aborted:
        raise _Aborted(Ended(player, aborted.outcome)) from None


class _Match:
    """The launches of one run."""

    def __init__(self, players: Sequence[Measuring]) -> None:
        self._players = players
        self.rounds: list[tuple[Round, ...]] = []

    def warm_up(self) -> None:
        with _for(0):
            matrices = self._players[0].lay_out()
        for place, player in enumerate(self._players):
            with _for(place):
                player.attach(matrices)
        for place, player in enumerate(self._players):
            with _for(place):
                player.warm_up()

    def round(self) -> None:
        """Launch each player and the baseline once, in a random order."""
        number = len(self.rounds)
        for place, player in enumerate(self._players):
            with _for(place):
                player.unannounced_checks(number)
        inputs = self._players[0].scored.deal()
        order: list[int | None] = [None, *range(len(self._players))]
        secrets.SystemRandom().shuffle(order)
        launches: dict[int | None, CheckedLaunch] = {}
        for whose in order:
            with _for(whose or 0):
                player = self._players[whose or 0]
                launches[whose] = player.launch(number, inputs, baseline=whose is None)
        self.rounds.append(
            tuple(
                player.paired(
                    launches[place],
                    launches[None],
                    inputs,
                    kernel_first=order.index(place) < order.index(None),
                )
                for place, player in enumerate(self._players)
            )
        )

    def judged(self) -> tuple[tuple[Round, ...], ...]:
        """Return each player's rounds, without those in which the clocks differ."""
        judged: list[tuple[Round, ...]] = []
        for place, rounds in enumerate(zip(*self.rounds, strict=True)):
            clocks = judge_clocks(rounds)
            if not isinstance(clocks, tuple):
                raise _Aborted(Ended(place, clocks))
            judged.append(clocks)
        return tuple(judged)

    def end(self) -> None:
        for player in self._players:
            player.end()


def _is_enough(rounds: Sequence[tuple[Round, ...]], seconds: float, extent: Extent) -> bool:
    players = len(rounds[0]) if rounds else 1
    if len(rounds) < extent.fewest(len(rounds), seconds / players):
        return False
    if seconds > players * extent.seconds:
        return True
    each = list(zip(*rounds, strict=True))
    found = [difference(one, other) for one, other in combinations(each, 2)]
    return all(each is not None and max(each.below, each.above) <= STEADY for each in found)


def difference(one: Sequence[Round], other: Sequence[Round]) -> Estimate | None:
    """Return how much faster the first of two kernels is on one GPU, as a share; None if too many
    rounds were dropped."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if not (a.dropped or b.dropped)]
    kinds = slower_on(one), slower_on(other)
    if kinds[0] == kinds[1]:
        # A score is that of the inputs on which its kernel is slower: here both on the same.
        ratios = [b.kernel_ms / a.kernel_ms for a, b in both if kinds[0] in (None, a.inputs)]
        if len(ratios) < MIN_RATIOS:
            return None
        return Estimate.of_ratio(statistics.median(ratios), *median_interval(ratios))
    scores = [score(rounds, _ANY, RANKED.shape) for rounds in (one, other)]
    found = [
        Estimate.of_ratio(each.ratio, each.low, each.high)
        for each in scores
        if isinstance(each, Score)
    ]
    return found[0].minus(found[1]) if len(found) == len(scores) else None


_ANY = DeviceInfo.model_construct(fp32_peak_tflops=None)
"""The peak of a GPU does not matter for a ratio of times."""


def differences(games: Sequence[Game]) -> tuple[Difference, ...]:
    """Return the difference of every two players over all GPUs."""
    found = []
    for first, second in combinations(range(len(games[0].rounds)), 2):
        of_games = [difference(game.rounds[first], game.rounds[second]) for game in games]
        known = [each for each in of_games if each is not None]
        found.append(_over(known, first, second))
    return tuple(found)


def _over(known: Sequence[Estimate], first: int, second: int) -> Difference:
    if not known:
        return Difference(
            first=first,
            second=second,
            percent=0.0,
            low=-math.inf,
            high=math.inf,
            confidence=0.5,
            ordered=Ordered.UNKNOWN,
        )
    one_gpu = len(known) == 1
    mean = known[0] if one_gpu else over_gpus(known)
    reach = mean.below if mean.value > 0 else mean.above
    deviations = mean.value / max(reach / (NORMAL if one_gpu else student(len(known) - 1)), 1e-12)
    sure = (
        statistics.NormalDist().cdf(deviations)
        if one_gpu
        else below_student(deviations, len(known) - 1)
    )
    return Difference(
        first=first,
        second=second,
        percent=100 * math.expm1(mean.value),
        low=100 * math.expm1(mean.low),
        high=100 * math.expm1(mean.high),
        confidence=sure,
        ordered=_ordered(mean),
    )


def _ordered(difference: Estimate) -> Ordered:
    if difference.low > -EQUAL and difference.high < EQUAL:
        return Ordered.EQUAL
    if difference.low > 0:
        return Ordered.FASTER
    return Ordered.SLOWER if difference.high < 0 else Ordered.UNKNOWN


def settled(found: Sequence[Difference]) -> bool:
    """Return whether the order of all players is known."""
    return all(each.ordered is not Ordered.UNKNOWN for each in found)


def of_codes(playoff: PlayOff) -> Mapping[tuple[str, str], Ordered]:
    """Return the order of every two programs, in both directions."""
    opposite = {Ordered.FASTER: Ordered.SLOWER, Ordered.SLOWER: Ordered.FASTER}
    codes = [player.code for player in playoff.players]
    return {
        pair: ordered
        for each in playoff.differences
        for pair, ordered in (
            ((codes[each.first], codes[each.second]), each.ordered),
            ((codes[each.second], codes[each.first]), opposite.get(each.ordered, each.ordered)),
        )
    }
