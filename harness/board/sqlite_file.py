"""A board in one SQLite file, for one person.

Entering is one transaction, so that a grader killed in the middle leaves either the whole report
or nothing. Several graders may enter at once: each waits for the others.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from harness.board import schema
from harness.board.store import BUSY_SECONDS, Store
from harness.protocol.errors import StoreError

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class FileStore(Store):
    """A store in an SQLite file."""

    def __init__(self, path: Path, create: bool = False, key: Path | None = None) -> None:
        """Open the file. create: make it if it does not exist. key: as for a Store; the default is
        the file's own. Raises StoreError."""
        self.path = path
        self.name = str(path)
        self.key = key or path.with_suffix(".key")
        if not create and not path.exists():
            raise self.missing()
        with ExitStack() as undone, self._errors():
            access = "rwc" if create else "rw"
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode={access}",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
            )
            undone.callback(self.close)
            self._recognise()
            self._engine = self._set_up()
            self._prepare()
            undone.pop_all()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        alone = self._engine.execution_options(begin="BEGIN IMMEDIATE")
        with self._errors(), alone.begin() as connection:
            yield connection

    def check_database(self) -> None:
        with self.reading() as connection:
            verdict = connection.scalar(text("PRAGMA integrity_check(1)"))
        if verdict != "ok":
            raise StoreError(self.damaged(str(verdict)))

    def damaged(self, reason: str) -> str:
        return (
            f"{self.path} is damaged or is no leaderboard ({reason}); it was left as it is. "
            "Restore a copy of it or an export, or name another file with --store."
        )

    def _set_up(self) -> Engine:
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        engine = create_engine("sqlite://", creator=lambda: self._connection, poolclass=StaticPool)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            begin = connection.get_execution_options().get("begin", "BEGIN")
            connection.exec_driver_sql(begin)

        return engine

    def _recognise(self) -> None:
        # In this order: a process that makes it a leaderboard meanwhile writes both at once.
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        if application != schema.APPLICATION_ID and (application or tables):
            raise StoreError(
                f"{self.path} is a SQLite file of another program, not a leaderboard; "
                "it was left as it is. Name another file with --store."
            )

    def _prepare(self) -> None:
        with self.reading() as connection:
            found = schema.applied(connection)
        schema.check_known(found, schema.REVISIONS, self.name)
        if found == {schema.HEAD}:
            return
        with self.writing() as connection:
            connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            schema.bring_up_to_date(connection, self.name)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, DBAPIError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
            if code in _DAMAGED:
                raise StoreError(self.damaged(str(cause))) from None
            if code in _BUSY:
                raise self.locked() from None
            raise StoreError(f"{self.path} cannot be used: {cause}.") from None
