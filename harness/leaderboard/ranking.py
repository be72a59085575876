"""Who stands where: one board per GPU model, with ranks that respect the noise.

Ranks are given from the top. The best score opens rank 1; each next kernel shares the rank of the
kernel that opened it if their 95 % intervals overlap, and otherwise opens the next rank, which is
its place in the list. A chain of overlaps therefore cannot pull a kernel up to a leader from whom
it is distinguishable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple, Self

import harness
from harness.leaderboard.entry import Entry
from harness.report import Verdict
from problem.cases import CASES_VERSION


@dataclass(frozen=True, slots=True)
class Edition:
    """What two results must have in common to be compared."""

    judge: str
    cases: int

    @classmethod
    def current(cls) -> Self:
        """Of the judge that is running."""
        return cls(harness.__version__, CASES_VERSION)

    def __str__(self) -> str:
        return f"judge {self.judge}, cases {self.cases}"


class Standing(StrEnum):
    """Whether an entry may be ranked, and if not, why."""

    RANKED = "ranked"
    REGRADE = "regrade"
    """Scored by another judge or other cases: grade it again to compare it."""
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
    rank: int | None
    """None where the entry's standing is "regrade"."""
    runs: int
    """How many runs of this author and name could have been here."""
    twins: tuple[str, ...]
    """Other authors who entered the same source, comments and white space aside."""


@dataclass(frozen=True, slots=True)
class Board:
    """The ranking of one GPU model."""

    gpu: str
    edition: Edition
    rows: tuple[Row, ...]
    """By score, best first."""
    regrade: tuple[Row, ...]
    """The best runs of those who have none of this edition, best first; without sources that
    this edition has rejected."""
    records: tuple[Entry, ...] = field(repr=False)
    """Each run that was the best of its day, in order of time: the progress of the best score."""


_ON_A_BOARD = frozenset({Standing.RANKED, Standing.REGRADE})


def standing(entry: Entry, edition: Edition) -> Standing:
    if not entry.accepted:
        return Standing.NOT_ACCEPTED
    if entry.quick:
        return Standing.QUICK
    if entry.score is None or entry.device is None or not entry.on_gpu:
        return Standing.UNSCORED
    same = entry.judge == edition.judge and entry.cases == edition.cases
    return Standing.RANKED if same else Standing.REGRADE


def rank(
    entries: Iterable[Entry], edition: Edition, filter: Filter | None = None
) -> tuple[Board, ...]:
    """The boards of all GPU models that have a scored entry, those with most kernels first."""
    admits = (filter or Filter()).admits
    everyone = sorted(entries, key=attrgetter("created", "id"))
    shared = shared_sources(everyone)
    by_gpu: dict[str, tuple[list[Entry], list[Entry]]] = {}
    rejected: set[tuple[str, str, str]] = set()
    for entry in everyone:
        where = standing(entry, edition)
        if where is Standing.NOT_ACCEPTED and _is_final(entry, edition):
            rejected.add((entry.author, entry.name, entry.sha256))
        if where in _ON_A_BOARD and admits(entry):
            now, before = by_gpu.setdefault(entry.device or "", ([], []))
            (now if where is Standing.RANKED else before).append(entry)
    boards = [
        _board(gpu, edition, now, _without(before, rejected), shared)
        for gpu, (now, before) in by_gpu.items()
    ]
    return tuple(sorted(boards, key=lambda board: (-len(board.rows), board.gpu)))


def as_data(board: Board) -> dict[str, Any]:
    """A board for programs."""

    def row(line: Row) -> dict[str, Any]:
        return {
            "rank": line.rank,
            "standing": Standing.REGRADE if line.rank is None else Standing.RANKED,
            "runs": line.runs,
            "same_source_as": list(line.twins),
            **line.entry._asdict(),
        }

    return {
        "gpu": board.gpu,
        "judge": board.edition.judge,
        "cases": board.edition.cases,
        "rows": [row(line) for line in (*board.rows, *board.regrade)],
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
    now: list[Entry],
    before: list[Entry],
    shared: dict[str, set[str]],
) -> Board:
    """now, before: scored by this edition and by others, in order of time."""
    best = _best_runs(now)
    stale = [entry for key, entry in _best_runs(before).items() if key not in best]
    runs = Counter((entry.author, entry.name) for entry in (*now, *before))
    ranked = list(best.values())
    ranks = shared_ranks([_interval(entry) for entry in ranked])

    def row(entry: Entry, place: int | None) -> Row:
        authors = shared.get(entry.code)
        twins = tuple(sorted(authors - {entry.author})) if authors else ()
        return Row(entry, place, runs[entry.author, entry.name], twins)

    return Board(
        gpu=gpu,
        edition=edition,
        rows=tuple(map(row, ranked, ranks)),
        regrade=tuple(row(entry, None) for entry in stale),
        records=tuple(_records(now)),
    )


def _best_runs(entries: Iterable[Entry]) -> dict[tuple[str, str], Entry]:
    """By author and name, best first; of equal scores the earlier run."""
    best: dict[tuple[str, str], Entry] = {}
    for entry in sorted(entries, key=_score, reverse=True):
        best.setdefault((entry.author, entry.name), entry)
    return best


def _is_final(entry: Entry, edition: Edition) -> bool:
    """Whether this edition has judged the submission, so that nobody need regrade it."""
    judged = entry.verdict not in (Verdict.JUDGE_ERROR, Verdict.UNSUPPORTED)
    return judged and entry.judge == edition.judge and entry.cases == edition.cases


def _without(before: list[Entry], rejected: set[tuple[str, str, str]]) -> list[Entry]:
    return [entry for entry in before if (entry.author, entry.name, entry.sha256) not in rejected]


def _records(entries: Iterable[Entry]) -> Iterable[Entry]:
    best = 0.0
    for entry in entries:
        if _score(entry) > best:
            best = _score(entry)
            yield entry


def _score(entry: Entry) -> float:
    return entry.score or 0.0


def _interval(entry: Entry) -> tuple[float, float]:
    return (entry.low or 0.0, entry.high or 0.0)
