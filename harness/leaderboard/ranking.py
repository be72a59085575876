"""Who stands where: one board per GPU model, with ranks that respect the noise.

Ranks are given from the top. The best score opens rank 1; each next kernel shares the rank of the
kernel that opened it if their 95 % intervals overlap, and otherwise opens the next rank, which is
its place in the list. A chain of overlaps therefore cannot pull a kernel up to a leader from whom
it is distinguishable, and a score with a wide interval, which would overlap with everybody, is
shown and not ranked.

Which runs count is decided in evidence.py; of those, an author's kernel of one name, and an
author's code under whatever names, has one row: its best run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from harness.leaderboard import evidence
from harness.leaderboard.edition import Edition
from harness.leaderboard.entry import Entry

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
    """A line of a board: the best run of one author's kernel of one name."""

    entry: Entry
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
    entries: Iterable[Entry], edition: Edition, filter: Filter | None = None
) -> tuple[Board, ...]:
    """The boards of all GPU models that have a scored entry, those with most kernels first."""
    admits = (filter or Filter()).admits
    everyone = sorted(entries, key=attrgetter("created", "id"))
    # A claim cannot make look copied what the own judge has seen.
    shared = {
        True: shared_sources(entry for entry in everyone if entry.own),
        False: shared_sources(everyone),
    }
    gpus = dict.fromkeys(
        entry.device
        for entry in everyone
        if entry.device is not None and standing(entry, edition) in _SCORED and admits(entry)
    )
    boards = []
    for gpu in gpus:
        counted = evidence.weigh(everyone, gpu, edition)
        runs = [run for run in counted if _is_scored(run, edition) and admits(run.entry)]
        if runs:
            boards.append(_board(gpu, edition, runs, shared))
    return tuple(sorted(boards, key=lambda board: (-len(board.rows), board.gpu)))


def as_data(board: Board) -> dict[str, Any]:
    """A board for programs."""

    def row(line: Row) -> dict[str, Any]:
        return {
            "rank": line.rank,
            "standing": line.standing,
            "runs": line.runs,
            "same_source_as": list(line.twins),
            **line.entry._asdict(),
        }

    return {
        "gpu": board.gpu,
        "judge": board.edition.judge,
        "cases": board.edition.cases,
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


def shared_ranks(intervals: Sequence[tuple[float, float]]) -> list[int]:
    """Ranks of (low, high) intervals that are given best score first."""
    ranks: list[int] = []
    leader_low = float("inf")
    for place, (low, high) in enumerate(intervals, start=1):
        if not ranks or high < leader_low:
            leader_low = low
            ranks.append(place)
        else:
            ranks.append(ranks[-1])
    return ranks


def distinguishable(one: Entry, other: Entry) -> bool:
    """Whether two scores differ by more than the noise: their 95 % intervals do not overlap."""
    (one_low, one_high), (other_low, other_high) = _interval(one), _interval(other)
    return one_high < other_low or other_high < one_low


def _board(
    gpu: str,
    edition: Edition,
    runs: Sequence[evidence.Run],
    shared: dict[bool, dict[str, set[str]]],
) -> Board:
    """runs: scored, in order of time. shared: what shared_sources found among own entries, and
    among all."""
    standings = {
        run.entry.id: Standing.DISPUTED if run.disputed else standing(run.entry, edition)
        for run in runs
    }
    ranked = [run.entry for run in runs if standings[run.entry.id] is Standing.RANKED]
    others = [run.entry for run in runs if standings[run.entry.id] is not Standing.RANKED]
    best = list(_best_runs(ranked))
    there = _Taken()
    for entry in ranked:
        there.take(entry)
    rest = [entry for entry in _best_runs(others) if not there.has(entry)]
    counts = Counter((run.entry.author, run.entry.name) for run in runs)

    def row(entry: Entry, place: int | None) -> Row:
        twins = tuple(sorted(shared[entry.own].get(entry.code, {entry.author}) - {entry.author}))
        runs = counts[entry.author, entry.name]
        return Row(entry, standings[entry.id], place, runs, twins)

    return Board(
        gpu=gpu,
        edition=edition,
        rows=tuple(map(row, best, shared_ranks([_interval(entry) for entry in best]))),
        unranked=tuple(row(entry, None) for entry in rest),
        records=tuple(_records(ranked)),
    )


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


def _best_runs(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Best first, each author's name and code once; of equal scores the earlier run."""
    taken = _Taken()
    for entry in sorted(entries, key=_score, reverse=True):
        if not taken.has(entry):
            taken.take(entry)
            yield entry


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
