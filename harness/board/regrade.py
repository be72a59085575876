"""Grading again what is unverified, or what another version of the judge has scored.

Every new report goes to a file of JSON lines as soon as it is there, so that an interrupted or
undecided regrading is not lost. Importing that file applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.board.document import Document
from harness.board.entry import Entry, Version, differ, source_hash
from harness.board.ranking import Board
from harness.board.store import Store
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Submission, Verdict

Grader = Callable[[Submission], Report]
"""Grades a submission completely, on the device at hand."""


@dataclass(frozen=True, slots=True)
class Change:
    before: Entry
    after: Entry | None
    """None where it was not graded; `why` says the reason."""
    applies: bool
    """Whether the new report can replace the old one."""
    why: str
    """One phrase for people."""


def to_regrade(boards: Iterable[Board], version: Version) -> list[Entry]:
    """Return the results on these boards that are unverified or not of this version, each source
    of an author once."""
    found: dict[tuple[str | None, str, str], Entry] = {}
    for board in boards:
        for row in (*board.rows, *board.unranked, *board.unverified):
            entry = row.entry
            if not entry.verified or entry.version != version:
                found.setdefault((entry.device, entry.author, entry.sha256), entry)
    return list(found.values())


def regrade(store: Store, entries: Iterable[Entry], grade: Grader, kept: Path) -> Iterator[Change]:
    """Grade each entry's source again; new reports that apply are appended to the file `kept`."""
    elsewhere: dict[str, str] = {}
    for entry in entries:
        gpu = entry.device or ""
        if gpu in elsewhere:
            yield Change(entry, None, False, f"needs {gpu}; this machine has {elsewhere[gpu]}")
            continue
        try:
            report = store.document(entry.id).report
            true = {"sha256": source_hash(report)}
            document = store.own(grade(report.submission.model_copy(update=true)))
        except (UsageError, OSError) as error:
            yield Change(entry, None, False, f"could not be graded: {error}")
            continue
        change = _change(entry, document)
        if change.after and change.after.device not in (None, gpu):
            elsewhere[gpu] = change.after.device or ""
        if change.applies:
            with kept.open("a", encoding="utf-8") as lines:
                lines.write(document.json + "\n")
        yield change


def as_data(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [
        {
            "before": change.before._asdict(),
            "after": change.after._asdict() if change.after else None,
            "applies": change.applies,
            "why": change.why,
        }
        for change in changes
    ]


def _change(before: Entry, document: Document) -> Change:
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
    why = "larger than the noise" if differ(before, after) else "within the noise"
    return Change(before, after, True, why)
