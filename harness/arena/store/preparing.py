"""Bringing the database to today's version."""

import re
from pathlib import Path

from procrastinate.schema import SchemaManager
from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError, OperationalError

from harness.arena.data_dir import Secrets
from harness.arena.store import workers
from harness.arena.store.database import open_engine
from harness.arena.store.tables import metadata
from harness.board import schema
from harness.protocol.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations" / "versions"
FUNCTIONS = Path(__file__).with_name("functions.sql")
REVISIONS = tuple(f"arena_{number:04}" for number in range(4, 14))
"""The revisions since version 0.1, oldest first. The last depends on the board's last: a new one
there needs a new one here."""

HEAD = REVISIONS[-1]

OLDEST_POSTGRES = 15


def prepare(owner: URL, secrets: Secrets) -> None:
    """Migrate the database, all of it or nothing. Raises StoreError."""
    engine = open_engine(owner, connections=1)
    try:
        engine.connect().close()
    except OperationalError as error:
        raise StoreError(_unreachable(owner, error)) from None
    try:
        with engine.begin() as connection:
            check_version(connection)
            check_owner(connection, owner)
            # Two arenas that are started on one database at once migrate it one after the other.
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('arena'))"))
            found = schema.applied(connection)
            schema.check_known(found, REVISIONS, "the database")
            if found <= set(schema.REVISIONS):
                _create(connection)
            elif found != {HEAD}:
                schema.upgrade(connection, HEAD, MIGRATIONS)
            workers.set_own_key(connection, secrets.worker)
    except DBAPIError as error:
        why = " ".join(str(error.orig).split())
        raise StoreError(f"the database cannot be used: {why}") from None
    finally:
        engine.dispose()


def _create(connection: Connection) -> None:
    """Make today's tables in a new database, or in one with a board alone."""
    schema.bring_up_to_date(connection, "the database")
    metadata.create_all(connection)
    driver = connection.connection.dbapi_connection
    assert driver is not None
    # The queue's own tables, of the version that pyproject.toml pins. Several statements, with per
    # cent signs and colons as they stand.
    for script in (SchemaManager.get_schema(), FUNCTIONS.read_text(encoding="utf-8")):
        driver.cursor().execute(script)
    schema.stamp(connection, HEAD)


def check_version(connection: Connection) -> None:
    """Raises StoreError where the server is too old."""
    version = int(connection.scalar(text("SHOW server_version_num")) or 0) // 10000
    if version < OLDEST_POSTGRES:
        raise StoreError(
            f"the database is PostgreSQL {version}; {OLDEST_POSTGRES} or newer is needed."
        )


def check_owner(connection: Connection, owner: URL) -> None:
    """Raises StoreError where this login cannot keep an arena in the database."""
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise StoreError(
            f"the database {owner.database} is in {encoding}; make one with ENCODING 'UTF8'."
        )
    name, owns = connection.execute(_RIGHTS).one()
    if not owns:
        raise StoreError(
            f"{name} does not own the database {owner.database}: name its owner in --database, or "
            f"let a superuser say: ALTER DATABASE {owner.database} OWNER TO {name};"
        )


_RIGHTS = text(
    """SELECT current_user, pg_has_role(datdba, 'USAGE')
    FROM pg_database WHERE datname = current_database()"""
)


def _unreachable(owner: URL, error: OperationalError) -> str:
    """libpq says one reason for each address that it tried, in several lines each."""
    where = f"{owner.database} as {owner.username or 'nobody'}"
    reasons = re.findall(r"failed: (?:FATAL: *)?([^\n]+)", str(error.orig)) or [str(error.orig)]
    return (
        f"cannot reach the database {where}: {reasons[-1].strip().rstrip('.')}; "
        "look at the address, the user and the password in --database."
    )
