"""Reading reports from files and stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.board.document import Document
from harness.board.errors import StoreError
from harness.cli.commands._arguments import ENTRY_HELP
from harness.cli.preflight import check_regular

if TYPE_CHECKING:
    from harness.board.store import Store


def read(path: Path) -> str:
    """Return a file's text. Raises StoreError."""
    check_regular(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StoreError(f"{path} is not UTF-8 text: is it a report?") from None


def read_all(path: Path) -> Iterator[Document]:
    """Yield the report of a file, or those of its lines. Raises StoreError if there is none."""
    text = read(path)
    if not text.strip():
        raise StoreError(f"{path} is empty: it holds no report.")
    if text.startswith("{\n"):  # one report over several lines
        yield Document.parse(text, str(path))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield Document.parse(line, f"{path}, line {number},")


def find(store: Store, name: str) -> Document:
    """Return the entry whose id begins with `name`, or the best run of AUTHOR/NAME. Raises
    StoreError."""
    entries = store.entries()
    found = [entry for entry in entries if len(name) >= 4 and entry.id.startswith(name)]
    if not found:
        found = [entry for entry in entries if f"{entry.author}/{entry.name}" == name]
        found.sort(key=lambda entry: (entry.score or 0.0, entry.created))
        found = found[-1:]
    if not found:
        raise StoreError(f"{store.name} has no entry {name}; name {ENTRY_HELP}.")
    if len(found) > 1:
        raise StoreError(f"{name} is the beginning of {len(found)} ids; write more of it.")
    return store.document(found[0].id)
