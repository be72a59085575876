"""Fixtures of the arena's tests: a real PostgreSQL, empty for each test, and a site on it."""

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from fastapi.testclient import TestClient
from selenium.webdriver import Chrome
from sqlalchemy import Connection, Engine, text

from harness.arena.data_dir import DataDir, Secrets
from harness.arena.postgres import Server
from harness.arena.processes import Settings
from harness.arena.rules import RulesFile
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Person, Role
from harness.arena.store.preparing import prepare
from harness.arena.store.tables import board_version, metadata, worker_keys
from harness.arena.web.app import application
from harness.arena.web.connections import LimitedProtocol
from harness.arena.web.context import Site
from harness.board import tables as board
from tests.arena.submitting import Add, FakeWorker, Key
from tests.arena.visiting import Visitor
from tests.waiting import eventually


@pytest.fixture(scope="session")
def server(bare_server: Server, secrets: Secrets) -> Server:
    prepare(bare_server.url, secrets)
    return bare_server


@pytest.fixture(scope="session")
def database(server: Server) -> Iterator[Engine]:
    engine = open_engine(server.url, connections=20)
    yield engine
    engine.dispose()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the user of a new PostgreSQL may enter, unlike the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        yield Path(folder)


@pytest.fixture
def engine(database: Engine) -> Engine:
    """The database without people, submissions and results, but with the key of its own workers."""
    queue = "procrastinate_events", "procrastinate_jobs", "procrastinate_workers"
    tables = {*queue, *metadata.tables, *board.metadata.tables}
    tables -= {worker_keys.name, board_version.name}
    statements = [
        "SET LOCAL session_replication_role = replica",
        "DELETE FROM worker_keys WHERE NOT own",
        *(f"DELETE FROM {name}" for name in tables),
    ]
    with database.begin() as connection:
        connection.execute(text("; ".join(statements)))
    return database


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """A connection that commits after each statement, so that others see its changes at once."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@pytest.fixture
def worker(engine: Engine) -> FakeWorker:
    """A worker without a GPU that has joined the arena."""
    return FakeWorker(engine)


@pytest.fixture
def person(connection: Connection) -> Add:
    def add(name: str, role: Role = Role.CONTESTANT) -> Person:
        return people.add_person(connection, name, role)

    return add


@pytest.fixture
def ada(person: Add) -> Person:
    return person("ada")


@pytest.fixture
def key(connection: Connection) -> Key:
    """A function that makes a new key for a person and returns it as a header."""

    def make(person: Person) -> dict[str, str]:
        return {"Authorization": f"Bearer {people.new_key(connection, person.id, 'test')}"}

    return make


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The path of the rules file, which a test may write."""
    return tmp_path / "rules.toml"


@pytest.fixture
def site(engine: Engine, rules: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site. Its boards are always up to date, however slow the machine is, and pages hear of
    that soon."""
    monkeypatch.setattr("harness.arena.web.boards.FRESH_SECONDS", 0.0)
    monkeypatch.setattr("harness.arena.web.boards.CHECK_INTERVAL_FACTOR", 0.0)
    monkeypatch.setattr("harness.arena.web.boards.PATIENCE_SECONDS", float("inf"))
    monkeypatch.setattr("harness.arena.web.live.BOARD_SECONDS", 0.1)
    return Site(
        engine=engine,
        data_dir=DataDir(rules.parent),
        rules_file=RulesFile(rules),
        settings=Settings(data=rules.parent),
    )


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    with TestClient(application(site), follow_redirects=False) as client:
        yield client


@pytest.fixture
def visitor(chrome: Chrome, address: str) -> Visitor:
    """A person with a fresh browser."""
    return Visitor(chrome, address)


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    """The address at which the site is served over real connections."""
    with served(site, shutdown_seconds=1) as address:
        yield address


@contextmanager
def served(site: Site, shutdown_seconds: int) -> Iterator[str]:
    """Serve the site over real connections; yield the address."""
    server = uvicorn.Server(
        uvicorn.Config(
            application(site),
            http=LimitedProtocol,
            log_config=None,
            timeout_graceful_shutdown=shutdown_seconds,
        )
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        eventually(lambda: server.started, "served")
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
