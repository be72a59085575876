"""The store: every report that was entered, in one SQLite file.

Entering is one transaction, so that a grader killed in the middle leaves either the whole report
or nothing; write-ahead logging and a busy timeout let several graders enter at once.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self
from urllib.parse import quote

from pydantic import ValidationError

from harness.errors import UsageError
from harness.leaderboard import schema
from harness.leaderboard.entry import Entry, canonical, identity
from harness.report import Report

DEFAULT_STORE = Path("leaderboard.sqlite")
BUSY_SECONDS = 60.0
"""How long to wait for other graders; entering one report takes milliseconds."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SQLITE_MODE = {"create": "rwc", "update": "rw", "read": "ro"}
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class StoreError(UsageError):
    """The store, or what is to be entered, cannot be used; says what is wrong and what to do."""


class Entered(NamedTuple):
    """What became of the reports that were to be entered."""

    ids: tuple[str, ...]
    new: int
    """How many of them the store did not have yet."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report as it is stored."""

    text: str
    """Canonical JSON."""
    report: Report

    def __post_init__(self) -> None:
        name = self.report.submission.name
        if "/" in name or "\\" in name:
            raise StoreError(
                f"{name!r} cannot be the name of a kernel file: it would lead to another folder. "
                "Rename the file and grade it again."
            )

    @property
    def id(self) -> str:
        return identity(self.text)

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(canonical(json.loads(report.model_dump_json())), report)

    @classmethod
    def parse(cls, text: str, origin: str) -> Self:
        """Read JSON. Raises StoreError, naming the origin, where it is no report."""
        try:
            report = Report.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            reason = f"{place}: {first['msg']}" if place else first["msg"]
            raise StoreError(
                f"{origin} is not a report that this judge can read ({reason}); "
                "`grade --json` writes one."
            ) from None
        submission = report.submission
        if report.score and submission.sha256 not in _sums(submission.source):
            raise StoreError(
                f"{origin} was changed after it was written: its source does not have the sha256 "
                "that it names. Grade the file again."
            )
        return cls(canonical(json.loads(text)), report)


class Store:
    """An open store. Use as a context manager."""

    def __init__(self, path: Path, mode: Literal["create", "update", "read"] = "update") -> None:
        """Open the file, which "create" makes where there is none. Raises StoreError.

        "read" neither changes nor migrates it: for a store that is merged into another.
        """
        self.path = path
        if mode != "create" and not path.exists():
            raise StoreError(
                f"there is no store at {path}; enter a result with "
                "`grade KERNEL.cu --submit --author NAME`, or name the store with --store."
            )
        with self._errors():
            self._connection = _connect(path, _SQLITE_MODE[mode])
            try:
                self._recognise()
                if mode != "read":
                    self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # ------------------------------------------------------------------------------- writing

    def enter(self, report: Report) -> str:
        """Enter one report and return its entry's id. When this returns, it is on disk."""
        return self.enter_documents([Document.of(report)]).ids[0]

    def enter_documents(self, documents: Iterable[Document]) -> Entered:
        """Enter all of them or, if anything goes wrong, none. What is there already stays."""
        ids: list[str] = []
        new = 0
        with self._errors(), self._transaction():
            for document in documents:
                ids.append(document.id)
                row = self._connection.execute(schema.INSERT_REPORT, (document.id, document.text))
                if row.rowcount:
                    entry = Entry.of(document.report, document.id)
                    self._connection.execute(schema.INSERT_ENTRY, entry)
                    new += 1
        return Entered(tuple(ids), new)

    # ------------------------------------------------------------------------------- reading

    def entries(self) -> list[Entry]:
        """Every entry, in no order."""
        with self._errors():
            rows = self._connection.execute(f"SELECT {schema.COLUMNS} FROM entries")
            return list(map(Entry._make, rows))

    def text(self, id: str) -> str:
        """The complete report of an entry, as canonical JSON."""
        with self._errors():
            row = self._connection.execute(
                "SELECT report FROM reports WHERE id = ?", (id,)
            ).fetchone()
        if row is None:
            raise StoreError(f"there is no entry {id} in {self.path}.")
        text = str(row[0])
        if identity(text) != id:
            raise StoreError(_damaged(self.path, f"the report of entry {id[:12]} was altered"))
        return text

    def document(self, id: str) -> Document:
        return Document.parse(self.text(id), f"entry {id[:12]} of {self.path}")

    def report(self, id: str) -> Report:
        return self.document(id).report

    def texts(self) -> Iterator[str]:
        """Every report as canonical JSON, by id, after the whole file has been checked."""
        self.check()
        with self._errors():
            ids = [id for (id,) in self._connection.execute("SELECT id FROM reports ORDER BY id")]
        for id in ids:
            yield self.text(id)

    def check(self) -> None:
        """Read everything. Raises StoreError where anything is damaged or missing."""
        with self._errors():
            (verdict,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise StoreError(_damaged(self.path, verdict))
            (unpaired,) = self._connection.execute(
                "SELECT count(*) FROM reports FULL JOIN entries USING (id) "
                "WHERE reports.id IS NULL OR entries.id IS NULL"
            ).fetchone()
        if unpaired:
            raise StoreError(_damaged(self.path, f"{unpaired} entries have lost their other half"))

    # ------------------------------------------------------------------------------ internals

    def _recognise(self) -> None:
        connection = self._connection
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != schema.APPLICATION_ID and (application or tables):
            raise StoreError(
                f"{self.path} is a SQLite file of another program, not a leaderboard; "
                "it was left as it is. Name another file with --store."
            )
        found, known = schema.version(connection), len(schema.MIGRATIONS)
        if found > known:
            raise StoreError(
                f"{self.path} was written by a newer judge (store version {found}, this judge "
                f"knows {known}); it was left as it is. Update the judge."
            )

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _use_write_ahead_log(connection)
        schema.migrate(connection)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _DAMAGED:
                raise StoreError(_damaged(self.path, str(error))) from None
            if code in _BUSY:
                raise StoreError(
                    f"{self.path} stayed locked by another program for {BUSY_SECONDS:.0f} s; "
                    "nothing was changed. Try again."
                ) from None
            raise StoreError(f"{self.path} cannot be used: {error}.") from None


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
    )


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Two processes that make a new store at once both come here, and SQLite does not wait."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _sums(source: str) -> set[str]:
    """sha256 of the files that read so: with a byte order mark and without."""
    return {hashlib.sha256(source.encode(coding)).hexdigest() for coding in ("utf-8", "utf-8-sig")}


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is damaged or is no leaderboard ({reason}); it was left as it is. "
        "Restore a copy of it or an export, or name another file with --store."
    )
