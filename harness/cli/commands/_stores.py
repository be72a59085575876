"""The place of a store: in a file, in the folder of an arena, or in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.arena.data_dir import DataDir
from harness.board.document import Document
from harness.protocol.errors import StoreError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import URL

    from harness.board.store import Store


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a store, as a person writes it."""

    text: str

    def __str__(self) -> str:
        """Return the address without its password."""
        if not self.is_url:
            return self.text
        password = urlsplit(self.text).password
        return self.text.replace(f":{password}@", ":***@") if password else self.text

    @property
    def is_url(self) -> bool:
        return "://" in self.text

    @property
    def is_arena(self) -> bool:
        return not self.is_url and self.path.is_dir()

    @property
    def path(self) -> Path:
        """The file or the folder."""
        return Path(self.text)

    @property
    def key(self) -> Path | None:
        """The file of its signing key, which need not exist; None for a database."""
        if self.is_url:
            return None
        return self.path / "signing-key.pem" if self.is_arena else self.path.with_suffix(".key")

    def sibling(self, suffix: str) -> Path:
        """Return the path of a file that belongs to the store; a database's is in the current
        folder."""
        if self.is_url:
            return Path(f"leaderboard{suffix}")
        folder, file = self.path / f"leaderboard{suffix}", self.path.with_suffix(suffix)
        return folder if self.is_arena else file


DEFAULT_STORE = Address("leaderboard.sqlite")

ENTRY_HELP = "the beginning of an entry's id, or AUTHOR/NAME for its best run, verified if possible"


_STORES = "name a file, the folder of an arena, or postgresql://OWNER@HOST/DATABASE"


def check_place(address: Address) -> None:
    """Raise UsageError for a place that is neither a store nor looks like the file of a new one."""
    if address.is_url:
        _url(address)
        return
    path = address.path
    if address.is_arena and not DataDir(path).holds_an_arena:
        raise StoreError(f"{path} is a folder without an arena's database; {_STORES}.")
    if path.exists() or path.suffix:
        return
    raise UsageError(
        f"--store: there is no file or folder {path}. A new store needs a suffix, such as "
        f"{path.name or 'leaderboard'}.sqlite; a new arena is made by `nox -s arena`."
    )


def _url(address: Address) -> URL:
    """Return the address of a database. Raises StoreError."""
    from harness.arena.store import database  # slow to load

    url = database.address(address.text)
    if url is None:
        raise StoreError(f"{address} is no store: {_STORES}.")
    return url


def open_store(
    address: Address, create: bool = False, key: Path | None = None
) -> AbstractContextManager[Store]:
    """Open the store at an address. Raises UsageError.

    create: make it if it does not exist. key: the signing key's file, if it is not its own.
    """
    check_place(address)
    if address.is_url or address.is_arena:
        from harness.arena import as_store  # not all have its packages

        if address.is_url:
            return as_store.DatabaseStore(_url(address), str(address), key, create)
        return as_store.of_folder(address.path, key)
    from harness.board.sqlite_file import FileStore  # slow to load

    return FileStore(address.path, create, key)


def _read(path: Path) -> str:
    """Return a file's text. Raises UsageError, also where reading could wait for ever, as reading a
    pipe does."""
    if path.is_fifo() and path.parts[:2] != ("/", "dev"):
        raise UsageError(f"{path} is a pipe; name a file.")
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
    text = _read(path)
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
        found.sort(key=lambda entry: (entry.verified, entry.score or 0.0, entry.created))
        found = found[-1:]
    if not found:
        raise StoreError(f"{store.name} has no entry {name}; name {ENTRY_HELP}.")
    if len(found) > 1:
        raise StoreError(f"{name} is the beginning of {len(found)} ids; write more of it.")
    return store.document(found[0].id)
