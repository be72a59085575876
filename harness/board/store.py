"""The store: every report that was entered, in one SQLite file or in an arena's database.

A store has a signing key, in a file of its own, with which everything is signed that its own judge
enters. Results that neither this key nor a listed one signed are unverified (keys.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, Select, Table, exists, func, insert, or_, select

from harness.board import keys
from harness.board.document import Document
from harness.board.entry import INDEXED, Entry
from harness.board.tables import counted, entries, reports, signatures
from harness.protocol.errors import StoreError
from harness.protocol.report import Report, Signature

BUSY_SECONDS = 60.0
"""The time to wait for other graders; entering one report takes milliseconds."""


class Entered(NamedTuple):
    """The result of entering reports."""

    ids: tuple[str, ...]
    new: int
    """The number of reports that the store did not have yet."""


class Store(ABC):
    """An open store with the board's tables of today's version. Use as a context manager.

    Every error inside of `reading` and `writing` is raised as a StoreError that says what failed.
    """

    name: str
    """The name by which messages call the store."""

    key: Path | None
    """The file of the board's own key, which need not exist; None where none is known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """Open a transaction that reads."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """Open an exclusive transaction that is committed at its end, and undone where it fails."""

    @abstractmethod
    def check_database(self) -> None:
        """Check the whole database. Raises StoreError where anything is damaged."""

    @abstractmethod
    def damaged(self, reason: str) -> str:
        """Return the sentence for a damaged store."""

    def locked(self) -> StoreError:
        """Return the error of a store that others lock for BUSY_SECONDS."""
        return StoreError(
            f"{self.name} stayed locked by another program for {BUSY_SECONDS:.0f} s; "
            "nothing was changed. Try again."
        )

    def missing(self) -> StoreError:
        """Return the error of a place that has no store yet."""
        return StoreError(
            f"there is no store at {self.name}; enter a result with "
            "`grade KERNEL.cu --submit --author NAME`, or name another with --store."
        )

    # ------------------------------------------------------------------------------- writing

    def enter(self, report: Report) -> str:
        """Sign and enter a report of this machine's judge; return its entry's id. When this
        returns, it is on disk."""
        return self.enter_documents([self.own(report)]).ids[0]

    def own(self, report: Report) -> Document:
        """Return the signed document of a report that this machine's judge has just written."""
        if self.key is None:
            raise StoreError(
                f"{self.name} does not say which key signs what is graded here: "
                "name its file with --key. It is created if it is missing."
            )
        return Document.of(report).signed_by(self.key)

    def enter_documents(self, documents: Iterable[Document]) -> Entered:
        """Enter all documents or, if anything goes wrong, none. What is there already stays."""
        ids: list[str] = []
        new = 0
        with self.writing() as connection:
            for document in documents:
                ids.append(document.id)
                new += enter_document(connection, document)
        return Entered(tuple(ids), new)

    # ------------------------------------------------------------------------------- reading

    def entries(self) -> list[Entry]:
        """Return every entry that counts, in no order."""
        trusted = keys.trusted(self.key)
        with self.reading() as connection:
            return [Entry(*row) for row in connection.execute(counted_entries(trusted))]

    def document(self, id: str) -> Document:
        """Return the report of an entry, with the signature of a trusted key if there is one."""
        trusted = keys.trusted(self.key)
        with self.reading() as connection:
            document = kept_document(connection, id, trusted)
            here = connection.scalar(select(counted.c.graded_here).where(counted.c.id == id))
        if document is None:
            raise StoreError(f"there is no entry {id} in {self.name}.")
        if document.id != id:
            why = self.damaged(f"the report of entry {id[:12]} was altered")
            raise StoreError(why)
        signed = document.signature is not None and document.signature.key in trusted
        if here and not signed and self.key is not None:
            return document.signed_by(self.key)
        return document

    def documents(self) -> Iterator[Document]:
        """Yield every report that counts, by id, after everything has been checked."""
        self.check()
        with self.reading() as connection:
            ids = connection.scalars(select(counted.c.id).order_by(counted.c.id)).all()
        for id in ids:
            yield self.document(id)

    def check(self) -> None:
        """Check the whole store. Raises StoreError where anything is damaged or missing."""
        self.check_database()
        unpaired = (
            select(func.count())
            .select_from(reports.outerjoin(entries, entries.c.id == reports.c.id, full=True))
            .where(or_(reports.c.id.is_(None), entries.c.id.is_(None)))
        )
        with self.reading() as connection:
            count = connection.scalar(unpaired)
        if count:
            why = self.damaged(f"{count} entries have lost their other half")
            raise StoreError(why)


def counted_entries(keys: Collection[str] = ()) -> Select[Any]:
    """Select the rows that entries are made of. keys: those whose signature verifies a result."""
    signed = exists().where(signatures.c.id == entries.c.id, signatures.c.key.in_(sorted(keys)))
    return select(
        *(entries.c[name] for name in INDEXED), or_(counted.c.graded_here, signed)
    ).join_from(entries, counted, counted.c.id == entries.c.id)


def kept_document(connection: Connection, id: str, keys: Collection[str] = ()) -> Document | None:
    """Return a report as it was entered, with the signature of one of these keys or of another."""
    row = connection.execute(
        select(reports.c.report, signatures.c.key, signatures.c.value)
        .outerjoin_from(reports, signatures, signatures.c.id == reports.c.id)
        .where(reports.c.id == id)
        .order_by(signatures.c.key.in_(sorted(keys)).desc(), signatures.c.key)
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    document = Document(row.report, Report.model_validate_json(row.report))
    return document.signed(Signature(key=row.key, value=row.value) if row.key else None)


def enter_document(connection: Connection, document: Document) -> bool:
    """Enter one document inside a transaction; return whether it was new."""
    id = document.id
    new = _insert_new(connection, reports, id=id, report=document.text)
    if new:
        entry = Entry.of(document.report, id)._asdict()
        del entry["verified"]
        connection.execute(insert(entries).values(entry))
    if document.signature is not None:
        signature = document.signature
        _insert_new(connection, signatures, id=id, key=signature.key, value=signature.value)
    return new


def _insert_new(connection: Connection, table: Table, **values: str) -> bool:
    """Insert a row unless it exists; return whether it was new."""
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    statement = dialect.insert(table).on_conflict_do_nothing().values(values)
    return connection.execute(statement.returning(table.c.id)).first() is not None
