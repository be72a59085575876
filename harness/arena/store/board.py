"""The entries of a board: imported ones, and those of submissions that were neither withdrawn nor
disqualified."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, or_, select

from harness.arena.store.tables import board_version, gradings, submissions
from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.store import counted_entries, kept_document
from harness.board.tables import counted


def version(connection: Connection) -> int:
    """Return a number that grows whenever the board may have changed."""
    return int(connection.execute(select(board_version.c.number)).scalar_one())


def counting(
    connection: Connection, submitted_before: datetime | None = None, keys: Collection[str] = ()
) -> list[Entry]:
    """Return the entries that count, in no order. Those are verified that the arena's workers have
    graded, and those that were imported with the signature of one of these keys."""
    query = counted_entries(keys)
    if submitted_before is not None:
        submitted = counted.c.submitted
        query = query.where(or_(submitted.is_(None), submitted < submitted_before))
    return [Entry(*row) for row in connection.execute(query)]


def submission_of(connection: Connection, entry: str) -> str | None:
    """Return the submission whose result an entry is. entry: the beginning of its id."""
    return connection.scalar(
        select(submissions.c.id)
        .join(gradings, gradings.c.id == submissions.c.counts)
        .where(gradings.c.report.startswith(entry, autoescape=True))
        .limit(1)
    )


def imported(connection: Connection, entry: str) -> Document | None:
    """Return an imported report. entry: the beginning of its id."""
    id = connection.scalar(
        select(counted.c.id)
        .where(~counted.c.graded_here, counted.c.id.startswith(entry, autoescape=True))
        .limit(1)
    )
    return kept_document(connection, id) if id else None
