"""The versions of the board's tables: making today's, and migrating those of an earlier version."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, insert, inspect, select

from harness.board import tables
from harness.protocol.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = ("board_0004", "board_0005", "board_0006")
"""The revisions since version 0.1, oldest first; asking Alembic for them would slow every command.
A released migration is never edited: a change is a new one, and a change of tables.py."""

HEAD = REVISIONS[-1]

APPLICATION_ID = 0x6D6D6172
"""The number in a SQLite file's header that marks it as one of ours ("mmar")."""

_versions = Table(
    "alembic_version", MetaData(), Column("version_num", String(32), primary_key=True)
)


def applied(connection: Connection) -> set[str]:
    """Return the last revision of each history that the database has; none for a new database."""
    if not inspect(connection).has_table(_versions.name):
        return set()
    return set(connection.scalars(select(_versions.c.version_num)))


def check_known(found: set[str], revisions: Sequence[str], name: str) -> None:
    """Raise StoreError where a database has a revision that is not one of these, oldest first."""
    unknown = sorted(found - {*revisions, *REVISIONS})
    if unknown:
        raise StoreError(
            f"{name} was written by a newer judge, or before version 0.1 (it has {unknown[0]}, "
            f"this judge knows {revisions[0]} to {revisions[-1]}); it was left as it is. "
            "Update the judge."
        )


def bring_up_to_date(connection: Connection, name: str) -> None:
    """Make the board's tables, or migrate them, in the caller's transaction.

    name: what messages call the database. Raises StoreError.
    """
    if applied(connection):
        upgrade(connection)
        return
    if inspect(connection).has_table(tables.reports.name):
        raise StoreError(f"{name} is older than version 0.1, the oldest that this judge reads.")
    tables.metadata.create_all(connection)
    connection.exec_driver_sql(_VIEW)
    stamp(connection, HEAD)


_VIEW = """CREATE VIEW counted AS
    SELECT id, false AS graded_here, CAST(NULL AS timestamptz) AS submitted FROM entries"""
"""`tables.counted` of a board without an arena."""


def stamp(connection: Connection, revision: str) -> None:
    """Record that the database has the tables of this revision."""
    _versions.create(connection, checkfirst=True)
    connection.execute(delete(_versions))
    connection.execute(insert(_versions).values(version_num=revision))


def upgrade(connection: Connection, to: str = "board@head", *more: Path) -> None:
    """Migrate in the caller's transaction. more: folders with other histories."""
    from alembic import command  # slow to load
    from alembic.config import Config

    config = Config()
    folders = (MIGRATIONS / "versions", *more)
    config.set_main_option("script_location", _quoted(MIGRATIONS))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(_quoted, folders)))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def _quoted(path: Path) -> str:
    """Escape per cent signs, which mean something in Alembic's settings."""
    return str(path).replace("%", "%%")
