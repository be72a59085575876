"""Reports in a folder, such as those that came with the judge.

A folder of reports that somebody names on the command line is trusted as a whole: its entries count
as verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.errors import StoreError


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
