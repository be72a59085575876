"""Reports that are committed beside the kernels of a repository, and whether they belong to them.

reports/<gpu>/<solution>.json belongs to solutions/<solution>.cu, word for word of its code: a
changed kernel cannot keep an old score, but its first comment may quote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.board.document import Document
from harness.board.entry import Entry
from harness.compiling.errors import SourceError
from harness.compiling.source import parse


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed report."""

    path: Path
    document: Document

    @property
    def entry(self) -> Entry:
        return Entry.of(self.document.report, self.document.id)


def read(folder: Path) -> list[Committed]:
    """Every report of the folder. Raises StoreError where a file is none."""
    return [
        Committed(path, Document.parse(path.read_text(encoding="utf-8"), str(path)))
        for path in sorted(folder.glob("*/*.json"))
    ]


def misfits(reports: Iterable[Committed], solutions: Path) -> list[str]:
    """What does not belong together, one sentence each; empty where all is well."""
    return [
        f"{committed.path}: {problem}"
        for committed in reports
        for problem in _problems(committed, solutions)
    ]


def _problems(committed: Committed, solutions: Path) -> Iterator[str]:
    report = committed.document.report
    kernel = solutions / f"{committed.path.stem}.cu"
    if report.submission.name != committed.path.stem:
        yield f"is the report of {report.submission.name}, not of {committed.path.stem}."
    elif not kernel.is_file():
        yield f"there is no {kernel}; remove the report."
    elif report.kernel and _code_sha256(kernel) != report.kernel.code_sha256:
        yield f"{kernel} has changed since; grade it again."
    gpu = report.device.name if report.device else "none"
    folder = committed.path.parent.name
    if folder.replace("-", " ").casefold() not in gpu.casefold():
        yield f"was graded on {gpu}, which is not {folder}."
    if report.score is None or report.quick:
        yield "is no complete accepted run on a GPU; grade the kernel again."


def _code_sha256(kernel: Path) -> str | None:
    """Of the code without its comments; None where it cannot be read as a submission."""
    try:
        return parse(kernel.read_text(encoding="utf-8")).code_sha256
    except SourceError:
        return None
