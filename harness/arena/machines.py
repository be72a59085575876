"""Keys for machines: made where the arena is."""

from __future__ import annotations

import secrets

from sqlalchemy import URL, text

from harness.arena.arena import reached
from harness.arena.certificate import certificate
from harness.arena.place import Place
from harness.arena.store.database import open_engine
from harness.arena.worker_key import WorkerKey
from harness.errors import UsageError

MAX_NAME = 60


def make_key(
    place: Place, url: URL | None, name: str, address: tuple[str, int] | None
) -> WorkerKey:
    """A login of the database for one machine. url: of a database of somebody else's. Raises
    UsageError or DatabaseError."""
    if not (0 < len(name) <= MAX_NAME and name.isprintable()):
        raise UsageError(f"a machine's name has from 1 to {MAX_NAME} printable characters")
    if url is None and address is None:
        raise UsageError("name with --address where that machine reaches what --listen says")
    with reached(place, url) as owner:
        theirs = new_login(owner, name)
    if address is not None:
        theirs = theirs.set(host=address[0], port=address[1])
    if url is not None:
        return WorkerKey(theirs, None)
    return WorkerKey(theirs.set(query={}), certificate(place.certificate))


def new_login(owner: URL, name: str) -> URL:
    """The database's address, as a machine that it did not know before."""
    password = secrets.token_urlsafe(32)
    engine = open_engine(owner, connections=1)
    try:
        with engine.begin() as connection:
            login = connection.scalar(
                text("SELECT arena_new_machine(:name, :password)"),
                {"name": name, "password": password},
            )
    finally:
        engine.dispose()
    return owner.set(username=login, password=password)
