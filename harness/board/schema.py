"""The versions of the board's tables, and the migration from one to the next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = ("board_0001", "board_0002", "board_0003", "board_0004", "board_0005")
"""The revisions, oldest first; asking Alembic for them would slow every command. A released
migration is never edited: a change is a new one."""

HEAD = REVISIONS[-1]

APPLICATION_ID = 0x6D6D6172
"""The number in a SQLite file's header that marks it as one of ours ("mmar")."""


def applied(connection: Connection) -> set[str]:
    """Return the last revision of each history that the database has; none for a new database."""
    if not inspect(connection).has_table("alembic_version"):
        return set()
    return set(connection.scalars(text("SELECT version_num FROM alembic_version")))


def upgrade(connection: Connection, to: str = "board@head", *more: Path) -> None:
    """Migrate in the caller's transaction. more: folders with other histories."""
    from alembic import command  # slow to load

    command.upgrade(_config(connection, *more), to)


def stamp(connection: Connection, revision: str) -> None:
    """Record the version of a database that Alembic has never seen."""
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
    """Escape per cent signs, which mean something in Alembic's settings."""
    return str(path).replace("%", "%%")
