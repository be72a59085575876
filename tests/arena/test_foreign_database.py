"""An arena in somebody else's database: on a server that is not its own, over TCP, as an owner who
is no superuser."""

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import URL, Connection

from harness.arena.data_dir import Secrets
from harness.arena.postgres import OWNER, Server
from harness.arena.store import people, preparing, watching
from harness.arena.store.database import conninfo, open_engine
from harness.arena.store.people import Role
from harness.arena.store.preparing import prepare
from harness.arena.web.app import application
from harness.arena.web.context import Site
from harness.protocol.errors import StoreError
from tests.arena.submitting import FakeWorker, free_port, status, submit
from tests.waiting import eventually

PASSWORD = "of the course: #/@?'"


@pytest.fixture(scope="module")
def machine() -> Iterator[URL]:
    """A PostgreSQL as an administrator has it, reached as its superuser."""
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        made = Server(Path(folder, "cluster"), PASSWORD)  # never started as the arena's
        with open(made.folder / "pg_hba.conf", "a") as hba:
            hba.write("host all all 127.0.0.1/32 scram-sha-256\n")
        port = free_port()
        process = subprocess.Popen(
            [
                made.programs / "postgres",
                *("-D", made.folder, "-k", "", "-c", "fsync=off"),
                *("-c", "listen_addresses=127.0.0.1", "-p", str(port)),
            ],
            cwd=made.folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=made.user,
            group=made.user,
            extra_groups=[] if made.user else None,
        )
        url = URL.create(
            "postgresql+psycopg", OWNER, PASSWORD, "127.0.0.1", port=port, database=OWNER
        )
        try:
            eventually(lambda: answers(url), "the server answers")
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def answers(url: URL) -> bool:
    try:
        psycopg.connect(conninfo(url)).close()
    except psycopg.OperationalError:
        return False
    return True


def say(machine: URL, *statements: str) -> None:
    with psycopg.connect(conninfo(machine), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def course(machine: URL, database: str, owner: bool = True) -> URL:
    """A database, and somebody who is to keep an arena in it."""
    password = PASSWORD.replace("'", "''")
    user = f"{database}_course"
    say(
        machine,
        f"CREATE ROLE {user} LOGIN PASSWORD '{password}'",
        f"CREATE DATABASE {database} {f'OWNER {user}' if owner else ''}",
    )
    return machine.set(username=user, database=database)


def refused(url: URL, match: str) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        prepare(url, Secrets.fresh())
    assert "\n" not in str(caught.value) and PASSWORD not in str(caught.value)


def test_an_arena_is_run_in_it(machine: URL, site: Site, connection: Connection) -> None:
    url = course(machine, "contest")
    prepare(url, Secrets.fresh())
    prepare(url, Secrets.fresh())  # as after a move to another machine
    engine = open_engine(url)
    with TestClient(application(replace(site, engine=engine))) as client:
        with engine.begin() as own:
            ada = people.add_person(own, "ada", Role.CONTESTANT)
            id = submit(own, ada)
        FakeWorker(engine).grade(1.5)
        assert "1.500" in client.get("/").text
    with engine.connect() as own:
        assert status(own, id).score == 1.5
    engine.dispose()
    assert watching.recent(connection) == [], "the arena's own database has nothing of it"


def test_too_old(machine: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "OLDEST_POSTGRES", 99)
    refused(course(machine, "old"), r"is PostgreSQL \d\d; 99 or newer is needed")


def test_not_its_owner(machine: URL) -> None:
    url = course(machine, "anothers", owner=False)
    refused(url, "anothers_course does not own the database anothers: .* OWNER TO anothers_course;")


def test_another_encoding(machine: URL) -> None:
    url = course(machine, "ascii", owner=False).set(database="latin")
    say(
        machine,
        "CREATE DATABASE latin OWNER ascii_course ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    )
    refused(url, "is in LATIN1; make one with ENCODING 'UTF8'")


@pytest.mark.parametrize(
    ("part", "wrong", "why"),
    [
        ("password", "guessed", 'password authentication failed for user "postgres"'),
        ("username", "nobody_of_that_name", "password authentication failed"),
        ("database", "no_such", 'database "no_such" does not exist'),
        ("port", 1, "Connection refused"),
        ("host", "nowhere.invalid", "could not|failed to|Name or service"),
    ],
)
def test_what_cannot_be_reached_says_why(
    part: str, wrong: str | int, why: str, machine: URL
) -> None:
    url = machine.set(**{part: wrong})
    refused(url, f"cannot reach the database .*: .*({why}).*; look at the address")
