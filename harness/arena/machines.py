"""Keys for machines: made where the arena is, by a command or on the organiser's page."""

from __future__ import annotations

import secrets

from sqlalchemy import URL, Connection, text

from harness.arena.worker_key import WorkerKey
from harness.protocol.errors import UsageError

MAX_NAME = 60

Address = tuple[str, int]
"""Host and port at which a machine reaches what --listen says."""


def new_key(
    connection: Connection, database: URL, name: str, address: Address | None, known_by: str | None
) -> WorkerKey:
    """A login of the database for one machine. known_by: the certificate of an arena that listens
    by itself. Raises UsageError."""
    if not (0 < len(name) <= MAX_NAME and name.isprintable()):
        raise UsageError(f"a machine's name has from 1 to {MAX_NAME} printable characters")
    password = secrets.token_urlsafe(32)
    login = connection.scalar(
        text("SELECT arena_new_machine(:name, :password)"), {"name": name, "password": password}
    )
    theirs = database.set(username=login, password=password)
    if address is not None:
        theirs = theirs.set(host=address[0], port=address[1])
    return WorkerKey(theirs if known_by is None else theirs.set(query={}), known_by)
