"""Bringing the database to today's version, and its roles to their rights."""

from __future__ import annotations

from importlib.resources import files

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError

from harness.arena.place import Secrets
from harness.arena.store import roles
from harness.arena.store.database import open_engine

OLDEST_POSTGRES = 15


class DatabaseError(Exception):
    """The database cannot be used; says why and what to do."""


def prepare(owner: URL, secrets: Secrets) -> None:
    """Migrate, and set the roles right: all of it or nothing. Raises DatabaseError."""
    engine = open_engine(owner, connections=1)
    try:
        with engine.begin() as connection:
            version = int(connection.scalar(text("SHOW server_version_num")) or 0) // 10000
            if version < OLDEST_POSTGRES:
                raise DatabaseError(
                    f"the database is PostgreSQL {version}; "
                    f"the arena needs {OLDEST_POSTGRES} or newer."
                )
            # Two arenas that are started on one database at once migrate it one after the other.
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('arena'))"))
            command.upgrade(migrations(connection), "head")
            roles.grant(connection, owner, secrets)
    except DBAPIError as error:
        raise DatabaseError(f"the database cannot be used: {error.orig}") from None
    finally:
        engine.dispose()


def migrations(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files(__package__) / "migrations"))
    config.attributes["connection"] = connection
    return config
