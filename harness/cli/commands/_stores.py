"""Stores, which are files or the folders of arenas, and the reports in them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.board.document import Document
from harness.protocol.errors import StoreError, UsageError

if TYPE_CHECKING:
    from harness.board.store import Store


DEFAULT_STORE = Path("leaderboard.sqlite")

ENTRY_HELP = "the beginning of an entry's id, or AUTHOR/NAME for its best run"


def key_of(store: Path) -> Path:
    """Return the file of a store's signing key, which need not exist."""
    return store / "signing-key.pem" if store.is_dir() else store.with_suffix(".key")


def check_place(store: Path) -> None:
    """Raise UsageError for a place that is neither a store nor looks like the file of a new one."""
    if store.exists() or store.suffix:
        return
    raise UsageError(
        f"--store: there is no file or folder {store}. A new store needs a suffix, such as "
        f"{store.name or 'leaderboard'}.sqlite; a new arena is made by `nox -s arena`."
    )


@contextmanager
def open_store(path: Path, create: bool = False) -> Iterator[Store]:
    """Open a store: a file, which may be new, or the folder of an arena. Raises UsageError."""
    check_place(path)
    if path.is_dir():
        from harness.arena.as_store import open_arena  # not all have its packages

        with open_arena(path) as store:
            yield store
    else:
        from harness.board.sqlite_file import FileStore  # slow to load

        with FileStore(path, create) as store:
            yield store


def check_regular(path: Path) -> None:
    """Raise UsageError if reading this path could wait for ever, as reading a pipe does."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # reading it will say why it cannot be read
    if stat.S_ISFIFO(mode) and path.parts[:2] != ("/", "dev"):
        raise UsageError(f"{path} is a pipe; name a file.")


def read(path: Path) -> str:
    """Return a file's text. Raises StoreError."""
    check_regular(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StoreError(
            f"{path} is not UTF-8 text; name a report, or the lines that `export` wrote."
        ) from None


def read_all(path: Path) -> Iterator[Document]:
    """Yield the report of a file, or those of its lines. Raises StoreError if it has no report."""
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
