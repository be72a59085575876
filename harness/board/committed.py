"""Reports that are committed next to the kernels of a repository, and whether they match.

reports/<gpu>/<solution>.json belongs to solutions/<solution>.cu: a kernel whose code has changed
cannot keep an old score. Comments may change. A folder of reports that somebody names on the
command line is trusted as a whole, like the kernels next to it: its entries count as verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.errors import StoreError

_TOKEN = re.compile(r'// solve:[^\n]*|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\w+|\S', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed report."""

    path: Path
    document: Document

    @property
    def entry(self) -> Entry:
        return Entry.of(self.document.report, self.document.id)._replace(verified=True)


def read(folder: Path) -> list[Committed]:
    """Return every report of the folder. Raises StoreError where a file is no report."""
    found = []
    for path in sorted(folder.glob("*/*.json")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{path} cannot be read: {error}.") from None
        found.append(Committed(path, Document.parse(text, str(path))))
    return found


def mismatches(reports: Iterable[Committed], solutions: Path) -> list[str]:
    """Return a sentence for each report that does not match its kernel or its folder."""
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
    elif _tokens(kernel.read_text(encoding="utf-8")) != _tokens(report.submission.source):
        yield f"{kernel} has changed since; grade it again."
    gpu = report.device.name if report.device else "none"
    folder = committed.path.parent.name
    if folder.replace("-", " ").casefold() not in gpu.casefold():
        yield f"was graded on {gpu}, which is not {folder}."
    if report.score is None or report.quick:
        yield "is no complete accepted run on a GPU; grade the kernel again."


def _tokens(source: str) -> list[str]:
    """Return the words of a source of this repository, without comments but the launch line."""
    return [
        token
        for token in _TOKEN.findall(source)
        if token.startswith("// solve:") or not token.startswith(("//", "/*"))
    ]
