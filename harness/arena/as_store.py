"""The database of an arena as a store of reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from harness.arena.arena import reached
from harness.arena.data_dir import DataDir
from harness.arena.store.database import open_engine
from harness.arena.store.preparing import HEAD
from harness.board import schema
from harness.board.sqlite_file import BUSY_SECONDS
from harness.board.store import Store
from harness.protocol.errors import StoreError

_LOCK_NOT_AVAILABLE = "55P03"


class ArenaStore(Store):
    """An arena's open database."""

    def __init__(self, engine: Engine, name: str, key: Path) -> None:
        """Raises StoreError where the arena is of another version."""
        self.name = name
        self.key = key
        self._engine = engine
        with self.reading() as connection:
            found = schema.applied(connection)
        if found != {HEAD}:
            raise StoreError(
                f"the arena of {name} is of another version of the judge "
                f"({', '.join(found)}; this one knows {HEAD}); "
                "start it once with this version, or use the version that it runs."
            )

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._errors(), self._engine.begin() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = '{BUSY_SECONDS:.0f}s'"))
            # Two that enter the same reports in different orders would wait for each other.
            connection.execute(select(func.pg_advisory_xact_lock(func.hashtext("board"))))
            yield connection

    def check_database(self) -> None:
        """Do nothing: the server checks its own files."""

    def damaged(self, reason: str) -> str:
        return f"{self.name} is damaged ({reason}). Restore a backup of it."

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                raise StoreError(
                    f"{self.name} stayed locked by another program for {BUSY_SECONDS:.0f} s; "
                    "nothing was changed. Try again."
                ) from None
            first = str(error.orig).strip().split("\n")[0]
            raise StoreError(f"{self.name} cannot be used: {first}.") from None


@contextmanager
def open_arena(folder: Path) -> Iterator[ArenaStore]:
    """Open the database of the arena in this folder, whether it runs or not. Raises UsageError."""
    data_dir = DataDir(folder)
    if not data_dir.holds_an_arena:
        raise StoreError(
            f"{folder} is a folder without an arena's database; name a file, or an arena's folder."
        )
    with reached(data_dir) as owner:
        engine = open_engine(owner, connections=1)
        try:
            yield ArenaStore(engine, str(folder), data_dir.signing_key)
        finally:
            engine.dispose()
