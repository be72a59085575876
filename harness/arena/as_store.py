"""A PostgreSQL database as a store of reports: that of an arena, or one with a board alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from harness.arena.arena import reached
from harness.arena.data_dir import DataDir
from harness.arena.store.database import open_engine
from harness.arena.store.preparing import HEAD, check_version
from harness.board import schema
from harness.board.store import BUSY_SECONDS, Store
from harness.protocol.errors import StoreError

_LOCK_NOT_AVAILABLE = "55P03"


class DatabaseStore(Store):
    """An open PostgreSQL."""

    def __init__(self, url: URL, name: str, key: Path | None, create: bool = False) -> None:
        """create: make a board in an empty database; an arena's is migrated by the arena alone.
        Raises StoreError."""
        self.name = name
        self.key = key
        self._engine: Engine = open_engine(url, connections=1)
        try:
            self._prepare(create)
        except BaseException:
            self.close()
            raise

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

    def _prepare(self, create: bool) -> None:
        with self.reading() as connection:
            check_version(connection)
            if schema.applied(connection) in ({schema.HEAD}, {HEAD}):
                return
        with self.writing() as connection:
            found = schema.applied(connection)
            # Tables of any program: a board is created in an empty database only.
            if not found and (not create or inspect(connection).get_table_names()):
                raise self.missing()
            if not found <= set(schema.REVISIONS):
                raise StoreError(
                    f"the arena of {self.name} is of another version of the judge "
                    f"({min(found)}; this one knows {HEAD}); "
                    "start it once with this version, or use the version that it runs."
                )
            schema.bring_up_to_date(connection, self.name)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                raise self.locked() from None
            first = str(error.orig).strip().split("\n")[0]
            raise StoreError(f"{self.name} cannot be used: {first}.") from None


@contextmanager
def of_folder(folder: Path, key: Path | None) -> Iterator[Store]:
    """Open the database of the arena in this folder, whether it runs or not. Raises UsageError."""
    data_dir = DataDir(folder)
    with (
        reached(data_dir, None) as owner,
        DatabaseStore(owner, str(folder), key or data_dir.signing_key) as store,
    ):
        yield store
