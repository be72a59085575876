"""A real PostgreSQL for the tests: one server a session, started by the first test that asks."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sqlalchemy import URL

    from harness.arena.data_dir import DataDir, Secrets
    from harness.arena.postgres import Server


@pytest.fixture(scope="session")
def data_dir() -> Iterator[DataDir]:
    """Not in pytest's folder: as root the server is another user, and pytest shuts that one out."""
    from harness.arena.data_dir import DataDir

    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        yield DataDir(Path(folder, "data"))


@pytest.fixture(scope="session")
def secrets(data_dir: DataDir) -> Secrets:
    return data_dir.secrets()


@pytest.fixture(scope="session")
def bare_server(data_dir: DataDir, secrets: Secrets) -> Iterator[Server]:
    """Its arena's database is empty."""
    from sqlalchemy import text

    from harness.arena.postgres import Server
    from harness.arena.store.database import open_engine

    server = Server(data_dir.database, secrets.owner)
    server.keep_up()
    engine = open_engine(server.url, connections=1)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # Only the tests of kills must survive them.
        connection.execute(text("ALTER SYSTEM SET fsync = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()
    yield server
    server.stop()


_NUMBERS = itertools.count(1)


@pytest.fixture
def fresh_database(bare_server: Server) -> Iterator[Callable[[], URL]]:
    """Makes empty databases, and drops them after the test."""
    from sqlalchemy import text

    from harness.arena.store.database import open_engine

    engine = open_engine(bare_server.url, connections=1)
    made: list[str] = []

    def make() -> URL:
        made.append(f"test_{next(_NUMBERS)}")
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {made[-1]}"))
        return bare_server.url.set(database=made[-1])

    yield make
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for name in made:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()
