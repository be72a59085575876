"""The versions of the board's tables, and how those of an earlier one become today's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = ("board_0001", "board_0002", "board_0003", "board_0004")
"""Oldest first: asking Alembic would slow every command. A migration that has been released is
never edited: a change is a new one."""

HEAD = REVISIONS[-1]

APPLICATION_ID = 0x6D6D6172
"""Says in the file's header that a SQLite file is one of ours ("mmar")."""


def applied(connection: Connection) -> set[str]:
    """The last revision of each history that the database has; none where Alembic never was."""
    if not inspect(connection).has_table("alembic_version"):
        return set()
    return set(connection.scalars(text("SELECT version_num FROM alembic_version")))


def upgrade(connection: Connection, to: str = "board@head", *more: Path) -> None:
    """In the caller's transaction. more: folders with other histories."""
    from alembic import command  # slow to load

    command.upgrade(_config(connection, *more), to)


def stamp(connection: Connection, revision: str) -> None:
    """Say which version a database is of that Alembic has never seen."""
    from alembic import command

    command.stamp(_config(connection), revision)


def _config(connection: Connection, *more: Path) -> Config:
    from alembic.config import Config

    config = Config()
    folders = (MIGRATIONS / "versions", *more)
    config.set_main_option("script_location", _quoted(MIGRATIONS))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(_quoted, folders)))
    config.attributes["connection"] = connection
    return config


def _quoted(path: Path) -> str:
    """Alembic's settings are those of configparser, to which a per cent sign means something."""
    return str(path).replace("%", "%%")
