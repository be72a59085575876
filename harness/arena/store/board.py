"""What a board is made of: the entries whose gradings count, of submissions that stand."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Select, select, text

from harness.arena.store.tables import entries, gradings, reports, submissions
from harness.leaderboard.entry import INDEXED, Entry

_ENTRY_COLUMNS = [entries.c[name] for name in INDEXED]


def version(connection: Connection) -> int:
    """Another one whenever the board may be."""
    return int(connection.scalar(text("SELECT last_value FROM board_version")) or 0)


def counting(connection: Connection, handed_in_before: datetime | None = None) -> list[Entry]:
    """Entries of submissions that were neither withdrawn nor disqualified, in no order."""
    query: Select[tuple[object, ...]] = (
        select(*_ENTRY_COLUMNS)
        .select_from(entries)
        .join(gradings, gradings.c.report == entries.c.id)
        .join(submissions, submissions.c.counts == gradings.c.id)
        .where(submissions.c.withdrawn.is_(None), submissions.c.disqualified.is_(None))
    )
    if handed_in_before is not None:
        query = query.where(submissions.c.received < handed_in_before)
    # An arena's reports all come from its own workers.
    return [Entry._make((*row, True)) for row in connection.execute(query)]


def submission_of(connection: Connection, entry: str) -> str | None:
    """Whose result an entry is; by the beginning of its id."""
    return connection.scalar(
        select(submissions.c.id)
        .join(gradings, gradings.c.id == submissions.c.counts)
        .where(gradings.c.report.startswith(entry, autoescape=True))
        .limit(1)
    )


def report_text(connection: Connection, id: str) -> str | None:
    return connection.scalar(select(reports.c.report).where(reports.c.id == id))
