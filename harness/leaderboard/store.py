"""The store: every report that was entered, in one SQLite file.

Entering is one transaction, so that a grader killed in the middle leaves either the whole report
or nothing; write-ahead logging and a busy timeout let several graders enter at once.

A store has a signing key, in a file beside it. What its own judge enters is signed with it;
everything else is a claim that somebody makes, however consistent (admission.py).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self
from urllib.parse import quote

from harness.leaderboard import schema
from harness.leaderboard.document import Document, StoreError, identity
from harness.leaderboard.entry import Entry
from harness.report import Report, Signature

if TYPE_CHECKING:
    from harness.leaderboard.signing import SigningKey

DEFAULT_STORE = Path("leaderboard.sqlite")
BUSY_SECONDS = 60.0
"""How long to wait for other graders; entering one report takes milliseconds."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SQLITE_MODE = {"create": "rwc", "update": "rw", "read": "ro"}
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Entered(NamedTuple):
    """What became of the reports that were to be entered."""

    ids: tuple[str, ...]
    new: int
    """How many of them the store did not have yet."""


class Store:
    """An open store. Use as a context manager."""

    def __init__(self, path: Path, mode: Literal["create", "update", "read"] = "update") -> None:
        """Open the file, which "create" makes where there is none. Raises StoreError.

        "read" neither changes nor migrates it: for a store that is merged into another.
        """
        self.path = path
        self.key_path = path.with_suffix(".key")
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
        """Enter and sign what this machine's judge has just found; return its entry's id. When this
        returns, it is on disk."""
        return self.enter_documents([self.own(report)]).ids[0]

    def own(self, report: Report) -> Document:
        """What this machine's judge has just found, signed."""
        document = Document.of(report)
        return document.signed(self._key().sign(document.text))

    def enter_documents(self, documents: Iterable[Document]) -> Entered:
        """Enter all of them or, if anything goes wrong, none. What is there already stays."""
        ids: list[str] = []
        new = 0
        with self._errors(), self._transaction():
            for document in documents:
                ids.append(document.id)
                new += self._insert(document)
        return Entered(tuple(ids), new)

    # ------------------------------------------------------------------------------- reading

    def entries(self) -> list[Entry]:
        """Every entry, in no order."""
        own = self._key().public if self.key_path.exists() else ""
        with self._errors():
            rows = self._connection.execute(schema.SELECT_ENTRIES, (own,))
            return [Entry._make(row)._replace(own=bool(row[-1])) for row in rows]

    def document(self, id: str) -> Document:
        """The complete report of an entry, with the signature that was entered first."""
        signed = schema.version(self._connection) >= schema.WITH_SIGNATURES
        with self._errors():
            row = self._connection.execute(
                schema.SELECT_SIGNED if signed else schema.SELECT_UNSIGNED, (id,)
            ).fetchone()
        if row is None:
            raise StoreError(f"there is no entry {id} in {self.path}.")
        text, key, value = row
        if identity(text) != id:
            raise StoreError(_damaged(self.path, f"the report of entry {id[:12]} was altered"))
        document = Document(text, Report.model_validate_json(text))
        return document.signed(Signature(key=key, value=value) if key else None)

    def report(self, id: str) -> Report:
        return self.document(id).report

    def documents(self) -> Iterator[Document]:
        """Every report, by id, after the whole file has been checked."""
        self.check()
        with self._errors():
            ids = [id for (id,) in self._connection.execute("SELECT id FROM reports ORDER BY id")]
        for id in ids:
            yield self.document(id)

    def refused(self) -> list[str]:
        """Why reports that an earlier judge had let in are on no board."""
        with self._errors():
            return [reason for (reason,) in self._connection.execute("SELECT reason FROM refused")]

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
        schema.migrate(connection, self._reindex)

    def _insert(self, document: Document) -> bool:
        """Whether it was new. Inside a transaction."""
        id, connection = document.id, self._connection
        row = connection.execute(schema.INSERT_REPORT, (id, document.text))
        if row.rowcount:
            schema.insert_entry(connection, Entry.of(document.report, id))
        if document.signature is not None:
            signature = document.signature
            connection.execute(schema.INSERT_SIGNATURE, (id, signature.key, signature.value))
        return bool(row.rowcount)

    def _reindex(self) -> None:
        """Read every report as if it came from elsewhere. Those that are refused are set aside."""
        connection = self._connection
        texts = [text for (text,) in connection.execute("SELECT report FROM reports")]
        for table in ("entries", "reports"):
            connection.execute(f"DELETE FROM {table}")
        for text in texts:
            try:
                self._insert(Document.parse(text, "a report"))
            except StoreError as error:
                connection.execute("INSERT INTO refused VALUES (?, ?)", (text, str(error)))

    def _key(self) -> SigningKey:
        from harness.leaderboard.signing import SigningKey

        try:
            return SigningKey.at(self.key_path)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.key_path}, the store's signing key, cannot be used: {error}. Restore it, "
                "or delete it, and what was signed with it becomes a claim."
            ) from None

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


def signed(report: Report, store: Path) -> Report:
    """The report with the signature of that store, where it has a key: what `grade --json` writes
    beside a store can then be entered as its own."""
    from harness.leaderboard.signing import SigningKey

    key = store.with_suffix(".key")
    if not key.exists():
        return report
    document = Document.of(report)
    return document.signed(SigningKey.at(key).sign(document.text)).report


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


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} is damaged or is no leaderboard ({reason}); it was left as it is. "
        "Restore a copy of it or an export, or name another file with --store."
    )
