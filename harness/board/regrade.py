"""Grades again what another edition of the judge has scored, and shows what changes.

Every new report goes to a file of JSON lines as soon as it is there, so that an interrupted or
undecided regrading is not lost: importing that file is applying it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.places import is_known
from harness.board.ranking import Board, Standing
from harness.board.spread import difference
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Submission, Verdict

if TYPE_CHECKING:
    from harness.board.store import Store

Grader = Callable[[Submission], Report]
"""Grades a submission completely, on the device at hand."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one regrading found."""

    before: Entry
    after: Entry | None
    """None where it was not graded: see why."""
    applies: bool
    """Whether the new report can take the old one's place."""
    why: str
    """One phrase for people."""


def to_regrade(boards: Iterable[Board], claims: bool) -> list[Entry]:
    """What there is to regrade, best first on each board.

    claims: also what this board's own judge has not graded.
    """
    return [
        row.entry
        for board in boards
        for row in (*board.rows, *board.unranked)
        if row.standing in (Standing.REGRADE, Standing.DISPUTED) or (claims and not row.entry.own)
    ]


def regrade(store: Store, entries: Iterable[Entry], grade: Grader, kept: Path) -> Iterator[Change]:
    """Grade each entry's source again; new reports that apply are appended to kept."""
    elsewhere: dict[str, str] = {}
    for entry in entries:
        gpu = entry.device or ""
        if gpu in elsewhere:
            yield Change(entry, None, False, f"needs {gpu}; this machine has {elsewhere[gpu]}")
            continue
        try:
            document = store.own(grade(store.report(entry.id).submission))
        except (UsageError, OSError) as error:
            yield Change(entry, None, False, f"could not be graded: {error}")
            continue
        change = _judge(entry, document)
        if change.after and change.after.device not in (None, gpu):
            elsewhere[gpu] = change.after.device or ""
        if change.applies:
            with kept.open("a", encoding="utf-8") as lines:
                lines.write(document.json + "\n")
        yield change


def as_data(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """The changes for programs."""
    return [
        {
            "before": change.before._asdict(),
            "after": change.after._asdict() if change.after else None,
            "applies": change.applies,
            "why": change.why,
        }
        for change in changes
    ]


def _judge(before: Entry, document: Document) -> Change:
    after = Entry.of(document.report, document.id)
    verdict = document.report.verdict
    if verdict in (Verdict.JUDGE_ERROR, Verdict.UNSUPPORTED):
        return Change(before, after, False, f"{verdict.value}: not the submission's fault, kept")
    if after.device is not None and after.device != before.device:
        return Change(
            before, after, False, f"needs {before.device}; this machine has {after.device}"
        )
    if verdict is not Verdict.ACCEPTED:
        return Change(before, after, True, f"now {verdict.value}")
    if after.score is None:
        return Change(before, after, False, "no score this time; regrade it again")
    return Change(
        before,
        after,
        True,
        "larger than the noise" if is_known(difference(before, after)) else "within the noise",
    )
