"""Who stands where: one board per GPU model, with ranks that respect the noise.

Which runs count is decided in evidence.py, what the runs of one program say together in result.py,
how much of a score is the GPU's in spread.py, and whose place is before whose in places.py. An
author's kernel of one name, and an author's code under whatever names, has one row. A score with a
wide interval, which can hardly be told from any, is shown and not ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from harness.board import evidence, names, playoffs
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.places import Decided, places
from harness.board.result import Result, results
from harness.board.spread import Spreads, gpu_of, measured, said
from harness.judge.stages.playoff import PlayOff

MAX_HALF_WIDTH = 0.01
"""How far, of the score, a ranked score's 95 % interval may reach to either side. The judge stops
at 0.25 %; a measurement that ran out of time before 1 % cannot be told from its neighbours."""


class Standing(StrEnum):
    """Whether an entry may be ranked, and if not, why."""

    RANKED = "ranked"
    REGRADE = "regrade"
    """Scored by another judge or other cases: grade it again to compare it."""
    UNSTEADY = "unsteady"
    """Its interval is too wide to be ranked."""
    DISPUTED = "disputed"
    """Reports say both that it was accepted and, later, that it was not, and this board's own judge
    has not seen it: grade it here."""
    QUICK = "quick"
    UNSCORED = "unscored"
    NOT_ACCEPTED = "not accepted"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries take part. Ranks are given among those alone."""

    gpu: str | None = None
    """A part of the GPU's name, in any case."""
    badges: frozenset[str] = frozenset()
    """All of these."""
    author: str | None = None
    since: date | None = None
    """Graded on this day (UTC) or later."""

    def admits(self, entry: Entry) -> bool:
        return (
            (self.gpu is None or self.gpu.casefold() in (entry.device or "").casefold())
            and (not self.badges or self.badges <= entry.badges)
            and (self.author is None or self.author == entry.author)
            and (self.since is None or self.since.isoformat() <= entry.created)
        )


class Row(NamedTuple):
    """A line of a board: one author's kernel of one name."""

    entry: Entry
    """The run whose score is nearest to the row's."""
    score: float
    """Of all runs of this program."""
    low: float
    high: float
    gpus: int
    """On how many it was graded."""
    standing: Standing
    rank: int | None
    """Where the standing is "ranked"."""
    runs: int
    """How many runs of this author and name could have been here."""
    twins: tuple[str, ...]
    """Other authors who entered the same source, comments and white space aside."""


@dataclass(frozen=True, slots=True)
class Board:
    """The ranking of one GPU model."""

    gpu: str
    edition: Edition
    rows: tuple[Row, ...] = ()
    """Ranked, best first."""
    unranked: tuple[Row, ...] = ()
    """Scored, and not to be ranked as things are, best first: unsteady, disputed, or of another
    edition; without those that have a ranked row."""
    records: tuple[Entry, ...] = field(default=(), repr=False)
    """Each ranked run that was the best so far, in order of time: the progress of the score."""
    gpus: tuple[str, ...] = ()
    """Those of this model on which ranked runs were graded."""
    spreads: Spreads = field(default_factory=dict)
    """How much GPUs of this model differ; it is in the intervals of the rows."""
    played: tuple[PlayOff, ...] = field(default=(), repr=False)
    """The play-offs that have the last word on the order of some."""

    @property
    def said_of_gpus(self) -> str:
        """How far its ranks hold for other GPUs of the model, and which play-offs they follow;
        empty where nothing is ranked."""
        if not self.gpus:
            return ""
        sentences = [said(self.gpus, self.spreads), *map(playoffs.said, self.played)]
        return " ".join(sentences)


_SCORED = frozenset({Standing.RANKED, Standing.UNSTEADY, Standing.REGRADE})


def standing(entry: Entry, edition: Edition) -> Standing:
    """By itself, whatever other reports say."""
    if not entry.accepted:
        return Standing.NOT_ACCEPTED
    if entry.quick:
        return Standing.QUICK
    if entry.score is None or entry.device is None or not entry.on_gpu:
        return Standing.UNSCORED
    if (entry.judge, entry.cases) != (edition.judge, edition.cases):
        return Standing.REGRADE
    return Standing.RANKED if _is_steady(entry) else Standing.UNSTEADY


def rank(
    entries: Iterable[Entry],
    edition: Edition,
    filter: Filter | None = None,
    played: Sequence[PlayOff] = (),
) -> tuple[Board, ...]:
    """The boards of all GPU models that have a scored entry, those with most kernels first.

    played: the play-offs that count, in order of time.
    """
    admits = (filter or Filter()).admits
    everyone = _one_spelling(sorted(entries, key=attrgetter("created", "id")))
    # A claim cannot make look copied what the own judge has seen.
    shared = {
        True: shared_sources(entry for entry in everyone if entry.own),
        False: shared_sources(everyone),
    }
    models = dict.fromkeys(
        entry.device
        for entry in everyone
        if entry.device is not None and standing(entry, edition) in _SCORED and admits(entry)
    )
    boards = []
    for gpu in models:
        counted = evidence.weigh(everyone, gpu, edition)
        runs = [run for run in counted if _is_scored(run, edition) and admits(run.entry)]
        if runs:
            reliable = _reliable(counted, edition)
            gpus = tuple(sorted({gpu_of(run) for run in reliable}))
            spreads = _spreads(reliable) if len(gpus) > 1 else {}
            heard = playoffs.counting(played, edition, gpu, gpus)
            found = _rows(runs, edition, shared, spreads, playoffs.decided(heard))
            boards.append(Board(gpu, edition, *found, gpus, spreads, tuple(heard)))
    return tuple(sorted(boards, key=lambda board: (-len(board.rows), board.gpu)))


def _one_spelling(entries: Sequence[Entry]) -> list[Entry]:
    """Authors whose names look the same are one, spelled as the own judge first met them."""
    first = dict.fromkeys(entry.author for entry in entries if entry.own)
    first |= dict.fromkeys(entry.author for entry in entries)
    spelled: dict[str, str] = {}
    same = {author: spelled.setdefault(names.skeleton(author), author) for author in first}
    return [
        entry if same[entry.author] == entry.author else entry._replace(author=same[entry.author])
        for entry in entries
    ]


def as_data(board: Board) -> dict[str, Any]:
    """A board for programs."""

    def row(line: Row) -> dict[str, Any]:
        return {
            **line.entry._asdict(),
            "rank": line.rank,
            "standing": line.standing,
            "score": line.score,
            "low": line.low,
            "high": line.high,
            "gpus": line.gpus,
            "runs": line.runs,
            "same_source_as": list(line.twins),
        }

    return {
        "gpu": board.gpu,
        "judge": board.edition.judge,
        "cases": board.edition.cases,
        "gpus": list(board.gpus),
        "spread_between_gpus": [
            {"cores": cores, **spread._asdict()} for cores, spread in board.spreads.items()
        ],
        "playoffs": [
            playoff.model_dump(mode="json", exclude={"games"}) for playoff in board.played
        ],
        "rows": [row(line) for line in (*board.rows, *board.unranked)],
    }


def shared_sources(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """Every code that several authors entered, however commented, with those authors."""
    first: dict[str, str] = {}
    shared: dict[str, set[str]] = {}
    for entry in entries:
        author = first.setdefault(entry.code, entry.author)
        if author != entry.author:
            shared.setdefault(entry.code, {author}).add(entry.author)
    return shared


def _reliable(counted: Sequence[evidence.Run], edition: Edition) -> list[Entry]:
    """The runs that may say how much GPUs differ: those of the own judge, and claims only where
    there are none."""
    ranked = [
        run.entry
        for run in counted
        if not run.disputed and standing(run.entry, edition) is Standing.RANKED
    ]
    return [run for run in ranked if run.own] or ranked


def _spreads(runs: Iterable[Entry]) -> Spreads:
    by_cores: dict[str | None, list[Entry]] = {}
    for run in runs:
        by_cores.setdefault(run.cores, []).append(run)
    return {cores: measured(some) for cores, some in sorted(by_cores.items(), key=str)}


def _rows(
    runs: Sequence[evidence.Run],
    edition: Edition,
    shared: dict[bool, dict[str, set[str]]],
    spreads: Spreads,
    decided: Decided,
) -> tuple[tuple[Row, ...], tuple[Row, ...], tuple[Entry, ...]]:
    """Those ranked, those not, and the records. runs: scored, in order of time. shared: what
    shared_sources found among own entries, and among all."""
    standings = {
        run.entry.id: Standing.DISPUTED if run.disputed else standing(run.entry, edition)
        for run in runs
    }
    ranked = [run.entry for run in runs if standings[run.entry.id] is Standing.RANKED]
    others = [run.entry for run in runs if standings[run.entry.id] is not Standing.RANKED]
    best = list(_one_each(results(ranked, spreads)))
    there = _Taken()
    for entry in ranked:
        there.take(entry)
    rest = [(entry, one) for entry, one in _one_each(_alone(others)) if not there.has(entry)]
    counts = Counter((run.entry.author, run.entry.name) for run in runs)

    def row(entry: Entry, result: Result, place: int | None) -> Row:
        twins = tuple(sorted(shared[entry.own].get(entry.code, {entry.author}) - {entry.author}))
        runs = counts[entry.author, entry.name]
        score, low, high = result.score()
        return Row(entry, score, low, high, result.gpus, standings[entry.id], place, runs, twins)

    placed = places([result.contestant for _, result in best], decided)
    return (
        tuple(row(*best[number], place) for number, place in placed),
        tuple(row(*each, None) for each in rest),
        tuple(_records(ranked)),
    )


def _alone(entries: Iterable[Entry]) -> list[Result]:
    """Each run by itself: what is not ranked is not put together."""
    found = [result for entry in entries for result in results([entry], {})]
    return sorted(found, key=lambda result: -result.estimate.value)


class _Taken:
    """The rows that there are: one for an author's name, and one for an author's code."""

    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()
        self._codes: set[tuple[str, str]] = set()

    def has(self, entry: Entry) -> bool:
        named, coded = (entry.author, entry.name), (entry.author, entry.code)
        return named in self._names or coded in self._codes

    def take(self, entry: Entry) -> None:
        self._names.add((entry.author, entry.name))
        self._codes.add((entry.author, entry.code))


def _one_each(found: Iterable[Result]) -> Iterator[tuple[Entry, Result]]:
    """Each author's name and code once, with the run that stands for the program."""
    taken = _Taken()
    for result in found:
        score, *_ = result.score()
        free = [run for run in result.runs if not taken.has(run)]
        if free:
            entry = min(free, key=lambda run: abs(_score(run) - score))
            taken.take(entry)
            yield entry, result


def _is_scored(run: evidence.Run, edition: Edition) -> bool:
    return standing(run.entry, edition) in _SCORED


def _is_steady(entry: Entry) -> bool:
    score, (low, high) = _score(entry), _interval(entry)
    return max(score - low, high - score) <= MAX_HALF_WIDTH * score


def _records(entries: Iterable[Entry]) -> Iterator[Entry]:
    best = 0.0
    for entry in entries:
        if _score(entry) > best:
            best = _score(entry)
            yield entry


def _score(entry: Entry) -> float:
    return entry.score or 0.0


def _interval(entry: Entry) -> tuple[float, float]:
    return (entry.low or 0.0, entry.high or 0.0)
