"""Ranks: one board for each GPU model.

Only verified results are ranked: those that the board's own key or a listed key signed. All
other results are listed separately and change nothing else. A row is one author's program. Its
result is that of the median run, so that repeated gradings in the hope of a lucky one gain nothing.
Programs whose intervals overlap share a rank.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from harness.board.entry import Entry, Version
from harness.protocol.report import Verdict

MAX_HALF_WIDTH = 0.01
"""How far, as a share of the score, a ranked score's 95 % interval may reach to either side. The
judge stops at 0.25 %; a measurement that ran out of time before 1 % tells too little."""

_NO_JUDGEMENT = frozenset((Verdict.JUDGE_ERROR, Verdict.UNSUPPORTED))
_ON_ANY_DEVICE = frozenset((Verdict.WRONG_ANSWER, Verdict.MEMORY_ERROR, Verdict.RACE))
"""A kernel that the CPU device rejects with one of these verdicts is wrong on every GPU."""


class Status(StrEnum):
    """The status of a result: ranked, or the reason why it is not."""

    RANKED = "ranked"
    UNVERIFIED = "unverified"
    """Neither the board's own key nor a listed key signed it."""
    OTHER_VERSION = "other version"
    """Another version of the judge or its cases graded it."""
    UNSTEADY = "unsteady"
    """Its interval is too wide."""
    QUICK = "quick"
    UNSCORED = "unscored"
    NOT_ACCEPTED = "not accepted"


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice of entries. Ranks are given among the chosen ones."""

    gpu: str | None = None
    """A part of the GPU's name, in any case."""
    badges: frozenset[str] = frozenset()
    """The badges that an entry must have."""
    accuracy: str | None = None
    """The accuracy grade that an entry must have, or a better one."""

    def admits(self, entry: Entry) -> bool:
        return (
            (self.gpu is None or self.gpu.casefold() in (entry.device or "").casefold())
            and self.badges <= entry.badges
            and (self.accuracy is None or (entry.accuracy or "Z") <= self.accuracy)
        )


class Row(NamedTuple):
    entry: Entry
    """The run that is shown."""
    status: Status
    low: float
    high: float
    """The interval of that run, widened by what GPUs of this board were found to differ."""
    rank: int | None = None
    """The rank, where the status is "ranked"."""
    runs: int = 1
    """How many verified runs of this program there are, of which this is the median."""
    gpus: int = 1
    """The number of GPUs on which they were graded."""
    duplicates: tuple[str, ...] = ()
    """Other authors with a verified result of the same program."""
    variants: int = 1
    """How many programs of this name the author has had scored here, of which this is the best:
    the best of many is partly luck."""


class Spread(NamedTuple):
    """The difference between GPUs of one model, as measured on this board."""

    share: float
    """The largest difference of one program's scores on two GPUs, as a share."""
    program: str
    """The name of that kernel."""


@dataclass(frozen=True, slots=True)
class Board:
    """The ranking of one GPU model."""

    gpu: str
    version: Version
    """The latest version of the judge with a verified score here; only its scores are ranked."""
    rows: tuple[Row, ...] = ()
    """The ranked rows, best first."""
    unranked: tuple[Row, ...] = ()
    """Verified scores that cannot be ranked, of kernels without a ranked row, best first."""
    unverified: tuple[Row, ...] = ()
    """Scores without the signature of a trusted key, newest first."""
    gpus: tuple[str, ...] = ()
    """The GPUs on which ranked runs were graded."""
    spread: Spread | None = None
    """The spread between GPUs; None where no program was graded on two of them."""

    @property
    def scope(self) -> str:
        """Sentences that say for which GPUs the ranks hold; empty where nothing is ranked."""
        if not self.rows:
            return ""
        if len(self.gpus) == 1:
            return f"Graded on one GPU of this model ({self.gpus[0][:12]}): ranks hold for it."
        graded = f"Graded on {len(self.gpus)} GPUs of this model."
        if self.spread is None:
            return (
                f"{graded} No kernel was graded on two of them, so the intervals do not include "
                "how much the GPUs differ."
            )
        share = 100 * self.spread.share
        return (
            f"{graded} Scores of one kernel ({self.spread.program}) on two of them differ by "
            f"{share:.2g} %, so every interval is widened by {share / 2:.2g} % to either side."
        )


def status(entry: Entry, version: Version) -> Status:
    """Return whether the entry is ranked on a board of this version, by itself."""
    if not entry.accepted:
        return Status.NOT_ACCEPTED
    if entry.quick:
        return Status.QUICK
    if entry.score is None or entry.device is None or not entry.on_gpu:
        return Status.UNSCORED
    if not entry.verified:
        return Status.UNVERIFIED
    if entry.version != version:
        return Status.OTHER_VERSION
    return Status.RANKED if _is_steady(entry) else Status.UNSTEADY


EVERYTHING = Filter()


def rank(entries: Iterable[Entry], filter: Filter = EVERYTHING) -> tuple[Board, ...]:
    """Return the boards of all GPU models that have a score, those with most rows first."""
    everything = sorted(entries, key=attrgetter("created", "id"))
    verified = [entry for entry in everything if entry.verified]
    authors: dict[str, set[str]] = {}
    for entry in verified:
        authors.setdefault(entry.code, set()).add(entry.author)
    scored: dict[str, list[Entry]] = {}
    for entry in everything:
        scores = entry.accepted and not entry.quick and entry.on_gpu and entry.score
        if scores and filter.admits(entry):
            scored.setdefault(entry.device or "", []).append(entry)
    boards = [_board(gpu, chosen, verified, authors) for gpu, chosen in scored.items()]
    shown = [board for board in boards if board.rows or board.unranked or board.unverified]
    return tuple(sorted(shown, key=lambda board: (-len(board.rows), board.gpu)))


def _board(
    gpu: str, scored: Sequence[Entry], verified: Sequence[Entry], authors: dict[str, set[str]]
) -> Board:
    """Make the board of one GPU model. scored and verified: in order of time."""
    versions = [entry.version for entry in scored if entry.verified]
    version = max(versions, key=lambda each: each.age, default=Version.current())
    rejected = _rejections(verified, gpu, version)
    valid = [
        entry for entry in scored if entry.verified and entry.created > rejected.get(entry.code, "")
    ]
    ranked = [entry for entry in valid if status(entry, version) is Status.RANKED]
    spread = _spread(ranked)
    rows = _ranked_rows(ranked, spread, authors)
    return Board(
        gpu,
        version,
        rows,
        _unranked_rows(valid, rows, version),
        _unverified_rows(gpu, scored, verified),
        tuple(sorted({_gpu(entry) for entry in ranked})),
        spread,
    )


def _rejections(verified: Iterable[Entry], gpu: str, version: Version) -> dict[str, str]:
    """Return when each program was last rejected, where that concerns this GPU's board."""
    found: dict[str, str] = {}
    for entry in verified:
        if (
            not entry.accepted
            and entry.version == version
            and _is_final(entry)
            and (entry.device == gpu or (not entry.on_gpu and entry.verdict in _ON_ANY_DEVICE))
        ):
            found[entry.code] = entry.created
    return found


def _ranked_rows(
    ranked: Iterable[Entry], spread: Spread | None, authors: dict[str, set[str]]
) -> tuple[Row, ...]:
    programs: dict[tuple[str, str], list[Entry]] = {}
    for entry in ranked:
        programs.setdefault((entry.author, entry.code), []).append(entry)
    found = [(_median(runs), runs) for runs in programs.values()]
    found.sort(key=lambda each: (-(each[0].score or 0), each[0].created, each[0].id))
    margin = 1 + spread.share / 2 if spread else 1.0
    rows: dict[tuple[str, str], Row] = {}
    variants = Counter((shown.author, shown.name) for shown, _ in found)
    for shown, runs in found:
        low, high = (shown.low or 0) / margin, (shown.high or 0) * margin
        others = tuple(sorted(authors[shown.code] - {shown.author}))
        gpus = len({_gpu(run) for run in runs})
        key = shown.author, shown.name
        row = Row(
            shown,
            Status.RANKED,
            low,
            high,
            runs=len(runs),
            gpus=gpus,
            duplicates=others,
            variants=variants[key],
        )
        rows.setdefault(key, row)  # the best program of a name
    places = ranks([(row.low, row.high) for row in rows.values()])
    return tuple(row._replace(rank=rank) for row, rank in zip(rows.values(), places, strict=True))


def ranks(intervals: Iterable[tuple[float, float]]) -> list[int]:
    """Return the rank of each row, given the intervals of the rows, best score first.

    A rank is one more than the number of rows whose whole interval lies above this one's. It is
    never better than that of the row before, so that a wide interval is no advantage.
    """
    lows: list[float] = []
    found: list[int] = []
    for low, high in intervals:
        faster = len(lows) - bisect_right(lows, high)
        found.append(max(1 + faster, found[-1] if found else 1))
        insort(lows, low)
    return found


def _unranked_rows(
    valid: Iterable[Entry], rows: Iterable[Row], version: Version
) -> tuple[Row, ...]:
    """Return the latest verified run of each kernel that has no ranked row."""
    taken = {key for row in rows for key in _keys(row.entry)}
    latest: dict[tuple[str, str], Entry] = {}
    for entry in valid:
        if not taken.intersection(_keys(entry)):
            latest[entry.author, entry.name] = entry
    best = sorted(latest.values(), key=lambda entry: -(entry.score or 0))
    return tuple(_single(entry, status(entry, version)) for entry in best)


def _unverified_rows(
    gpu: str, scored: Sequence[Entry], verified: Iterable[Entry]
) -> tuple[Row, ...]:
    """Return the unverified scores whose source has no verified verdict on this GPU yet.

    The hash of their program is only what their sender wrote, and says nothing here.
    """
    judged = {entry.sha256 for entry in verified if entry.device == gpu and _is_final(entry)}
    return tuple(
        _single(entry, Status.UNVERIFIED)
        for entry in reversed(scored)
        if not entry.verified and entry.sha256 not in judged
    )


def _is_final(entry: Entry) -> bool:
    return not entry.quick and entry.verdict not in _NO_JUDGEMENT


def _single(entry: Entry, status: Status) -> Row:
    return Row(entry, status, entry.low or 0, entry.high or 0)


def _keys(entry: Entry) -> set[tuple[str, str, str]]:
    return {("name", entry.author, entry.name), ("code", entry.author, entry.code)}


def _median(runs: Sequence[Entry]) -> Entry:
    """Return the run with the median score, of an even number the slower of the two."""
    return sorted(runs, key=lambda run: (run.score or 0, run.created))[(len(runs) - 1) // 2]


def _spread(ranked: Iterable[Entry]) -> Spread | None:
    """Return the largest difference of one program's median scores on two GPUs."""
    programs: dict[str, dict[str, list[Entry]]] = {}
    for entry in ranked:
        programs.setdefault(entry.code, {}).setdefault(_gpu(entry), []).append(entry)
    found = []
    for by_gpu in programs.values():
        if len(by_gpu) > 1:
            medians = sorted((_median(runs) for runs in by_gpu.values()), key=_score)
            found.append(Spread(_score(medians[-1]) / _score(medians[0]) - 1, medians[0].name))
    return max(found, default=None)


def _gpu(entry: Entry) -> str:
    """Return which GPU it was; one that the report does not name is taken for a GPU of its own."""
    return entry.uuid or f"unknown, of {entry.id}"


def _score(entry: Entry) -> float:
    return entry.score or 0.0


def _is_steady(entry: Entry) -> bool:
    score, low, high = _score(entry), entry.low or 0.0, entry.high or 0.0
    return 0 < low <= score <= high and max(score - low, high - score) <= MAX_HALF_WIDTH * score


def as_data(board: Board) -> dict[str, Any]:
    """Return a board for programs."""

    def row(line: Row) -> dict[str, Any]:
        data = line.entry._asdict() | line._asdict()
        del data["entry"]
        return {**data, "same_program_as": list(data.pop("duplicates"))}

    return {
        "gpu": board.gpu,
        "judge": board.version.judge,
        "cases": board.version.cases,
        "gpus": list(board.gpus),
        "spread_between_gpus": board.spread.share if board.spread else None,
        "rows": [row(line) for line in (*board.rows, *board.unranked)],
        "unverified": [row(line) for line in board.unverified],
    }
